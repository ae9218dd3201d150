"""Passes connections on from one network to the next: python relay.py LISTEN_AT SEND_TO PORT..."""

import asyncio
import sys
from contextlib import suppress


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def relay(listen_at: str, send_to: str, port: int) -> asyncio.Server:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(send_to, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    return await asyncio.start_server(pass_on, listen_at, port)


async def main(listen_at: str, send_to: str, *ports: str) -> None:
    servers = [await relay(listen_at, send_to, int(port)) for port in ports]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
