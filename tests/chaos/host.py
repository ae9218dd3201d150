"""A second host: a network namespace with a cable to this one, over which it reaches our servers at their usual addresses."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

RELAY = Path(__file__).with_name("relay.py")
OURS, THEIRS = "10.231.7.1", "10.231.7.2"


@dataclass(frozen=True)
class Host:
    """Its network's name, and the end of the cable that is here."""

    name: str
    cable: str

    @property
    def through(self) -> tuple[str, ...]:
        """What a process is started through to run there."""
        return ("ip", "netns", "exec", self.name)

    def unplug(self) -> None:
        """From now on nothing arrives on either side, and neither is told."""
        _ip("link", "set", self.cable, "down")

    def plug_in(self) -> None:
        _ip("link", "set", self.cable, "up")


@contextmanager
def second_host(ports: Sequence[int]) -> Iterator[Host]:
    """Skips the test, with the reason, where no network can be made. `ports`: what it reaches of ours."""
    number = os.getpid()
    host = Host(f"trellis-{number}", f"tr{number}")
    try:
        _ip("netns", "add", host.name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be made here: {getattr(error, 'stderr', '') or error}")
    relays: list[subprocess.Popen[str]] = []
    try:
        _ip("link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        _ip("addr", "add", f"{OURS}/30", "dev", host.cable)
        host.plug_in()
        for words in (
            ("addr", "add", f"{THEIRS}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", host.name, *words)
        numbers = [str(port) for port in ports]
        for start, listen_at, send_to in (((), OURS, "127.0.0.1"), (host.through, "127.0.0.1", OURS)):
            relays.append(_relay([*start, sys.executable, str(RELAY), listen_at, send_to, *numbers]))
        yield host
    finally:
        for relay in relays:
            relay.kill()
            relay.communicate()
        # The cable goes with its other end.
        _ip("netns", "del", host.name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _relay(command: list[str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process
