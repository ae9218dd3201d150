"""Where a request comes from, seen through the proxies that the installation trusts and no others."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from fastapi import Request


def caller_address(request: Request, trusted_proxies: tuple[str, ...]) -> str | None:
    """The address of the last hop that is not a trusted proxy.

    `X-Forwarded-For` is read from its end: each trusted proxy wrote down whom it spoke to, and what stands before the
    first untrusted one is the caller's own invention.
    """
    address = request.client.host if request.client is not None else None
    hops = [hop.strip() for line in request.headers.getlist("x-forwarded-for") for hop in line.split(",")]
    while address is not None and hops and _is_in(address, trusted_proxies):
        hop = hops.pop()
        if _parsed(hop) is None:
            break
        address = hop
    return address


def _is_in(address: str, networks: tuple[str, ...]) -> bool:
    found = _parsed(address)
    return found is not None and any(found in ip_network(network, strict=False) for network in networks)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None
