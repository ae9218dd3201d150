"""Decides which addresses a webhook may call: none that only this installation can reach, unless it is allowed to."""

import asyncio
import re
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx

from app.domain.events.errors import WebhookUrlRefused

# Its last 32 bits are an IPv4 address that a gateway calls (RFC 6052).
NAT64 = IPv6Network("64:ff9b::/96")
# Public by its number, but answered by the host beneath a machine (Azure's agent, with secrets of the machine).
OF_CLOUDS = frozenset({"168.63.129.16"})
# Labels of up to 63 characters (RFC 1123), in the form that a name server is asked for; underscores do occur.
HOST_NAME = re.compile(r"(?=.{1,254}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE)


# What resolvers read as an IPv4 address, though it is not written as one: 127.1, 0x7f000001, 2130706433.
NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
# Names that mean something on one host or network only (RFC 6761, 6762, 8375; `internal` is reserved by ICANN).
_LOCAL_LABELS = [name.split(".") for name in ("localhost", "localdomain", "local", "internal", "home.arpa")]


def checked_url(text: str, *, allow_private: bool) -> httpx.URL:
    """Raises WebhookUrlRefused for what can be seen without asking a name server."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise WebhookUrlRefused("This is not a URL.") from None
    if url.scheme != "https" and not (allow_private and url.scheme == "http"):
        raise WebhookUrlRefused("The URL must begin with https://.")
    if not url.host or url.userinfo or url.fragment:
        raise WebhookUrlRefused("The URL needs a host, and must hold neither credentials nor a fragment.")
    if url.port not in (None, *range(1, 65536)):
        raise WebhookUrlRefused("The URL's port must be from 1 to 65535.")
    _check_host(url.raw_host.decode("ascii"), allow_private=allow_private)
    return url


def _check_host(host: str, *, allow_private: bool) -> None:
    try:
        is_called = is_public(ip_address(host.strip("[]")))
    except ValueError:
        labels = host.lower().removesuffix(".").split(".")
        if not HOST_NAME.fullmatch(host) or NUMBER.fullmatch(labels[-1]):
            raise WebhookUrlRefused("The URL's host is not a name.") from None
        is_called = len(labels) > 1 and not any(labels[-len(name) :] == name for name in _LOCAL_LABELS)
    if not is_called and not allow_private:
        raise WebhookUrlRefused("Only public addresses are called.")


async def resolve(url: httpx.URL, *, allow_private: bool) -> str:
    """The address to connect to. Raises WebhookUrlRefused if any that the name stands for is not public, and OSError
    if it stands for none."""
    host = url.raw_host.decode("ascii").strip("[]")
    port = url.port or (443 if url.scheme == "https" else 80)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in found]
    if not allow_private and not all(is_public(ip_address(address.partition("%")[0])) for address in addresses):
        raise WebhookUrlRefused("The host's name stands for an address that is not public.")
    return addresses[0]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether anybody could call it: an address inside of an address counts as well."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved and str(address) not in OF_CLOUDS
