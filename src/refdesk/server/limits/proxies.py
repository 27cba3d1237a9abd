"""Who asks and how, where a reverse proxy asks for others: only proxies that are named are believed.

`X-Forwarded-For` goes before `Forwarded` (RFC 7239): proxies that write the one pass the other on as the client sent
it. A proxy that writes `Forwarded` must remove the other. The list is read from its end, up to the first address that
is no named proxy's: any client could have sent the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    from starlette.types import Scope

    Address: TypeAlias = IPv4Address | IPv6Address

_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*("[^"]*"|[^;\s]*)', re.IGNORECASE)
_PROTO = re.compile(r'(?:^|;)\s*proto\s*=\s*"?(https?)"?\s*(?:;|$)', re.IGNORECASE)
_PORT = re.compile(r"^\[(?P<six>[^\]]*)\](?::\d+)?$|^(?P<four>[\d.]+):\d+$")


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The addresses of proxies that say truthfully for whom they ask."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def trusts(self, address: str) -> bool:
        """Return whether a proxy is there."""
        found = _parse(address)
        return found is not None and any(found in network for network in self.networks)

    def find_client(self, scope: Scope) -> str:
        """Return the address of whoever asks; the nearest one that is certain, where a proxy says nothing of use."""
        client = str((scope.get("client") or ("",))[0])
        hops = _list_hops(Headers(scope=scope)) if self.networks and self.trusts(client) else []
        for hop in reversed(hops):
            address = _parse(hop)
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
        return client

    def find_scheme(self, scope: Scope) -> str:
        """Return over what the client spoke, `http` or `https`: as the proxy that asks for it says, where one does."""
        client = str((scope.get("client") or ("",))[0])
        said = _find_scheme(Headers(scope=scope)) if self.networks and self.trusts(client) else None
        return said or str(scope.get("scheme", "http"))


def read_proxies(names: Sequence[str]) -> TrustedProxies:
    """Return the proxies of the settings, each an IP address or network."""
    return TrustedProxies(tuple(ip_network(name, strict=False) for name in names))


def _list_hops(headers: Headers) -> list[str]:
    """Return for whom each proxy asked, the first one's answer first."""
    forwarded_for = headers.getlist("x-forwarded-for")
    if forwarded_for:
        return [hop.strip() for line in forwarded_for for hop in line.split(",")]
    elements = [element for line in headers.getlist("forwarded") for element in line.split(",")]
    return [found[1].strip('"') if (found := _FOR.search(element)) else "" for element in elements]


def _find_scheme(headers: Headers) -> str | None:
    """Return over what the nearest proxy was asked: `http`, `https`, or `None` where it does not say."""
    said = [one.strip().lower() for line in headers.getlist("x-forwarded-proto") for one in line.split(",")]
    if said:
        return said[-1] if said[-1] in ("http", "https") else None
    elements = [element for line in headers.getlist("forwarded") for element in line.split(",")]
    found = _PROTO.search(elements[-1]) if elements else None
    return found[1].lower() if found else None


def _parse(text: str) -> Address | None:
    found = _PORT.match(text)
    try:
        address = ip_address((found["six"] or found["four"]) if found else text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
