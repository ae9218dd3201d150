"""Sends an original back: always as an attachment, so that a browser never runs what somebody uploaded."""

from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from urllib.parse import quote

from fastapi.responses import StreamingResponse

from app.blobs.store import BlobStore
from app.domain.documents.records import DocumentRecord


async def original(blobs: BlobStore, record: DocumentRecord) -> StreamingResponse:
    """Raises BlobMissing or BlobStoreUnavailable before the answer has begun."""
    stream = blobs.stream(record.blob.key)
    first = await anext(stream, b"")

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for chunk in stream:
            yield chunk

    headers = {
        "Content-Length": str(record.blob.size_bytes),
        "Content-Disposition": content_disposition(record.document.filename),
        "X-Content-Type-Options": "nosniff",
        "ETag": f'"{record.blob.sha256.hex()}"',
    }
    return StreamingResponse(body(), media_type=record.version.media_type, headers=headers)


def content_disposition(filename: str) -> str:
    """RFC 6266: the last part of the name, in plain ASCII and, where that loses something, in UTF-8 as well."""
    name = PurePosixPath(filename.replace("\\", "/")).name.strip(". ") or "document"
    plain = "".join(character if 32 <= ord(character) < 127 and character not in '"%\\' else "_" for character in name)
    extended = f"; filename*=UTF-8''{quote(name, safe='')}" if plain != name else ""
    return f'attachment; filename="{plain}"{extended}'
