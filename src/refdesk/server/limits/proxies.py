"""The address and scheme of clients behind reverse proxies; only proxies named in the settings are believed.

`X-Forwarded-For` takes precedence over `Forwarded` (RFC 7239), since proxies that write the former pass the latter on
as the client sent it. A proxy that writes `Forwarded` must remove the other. The list is read from its end, up to the
first address that does not belong to a named proxy: any client could have sent the rest.
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
    """The networks of proxies that are trusted to name the client truthfully."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def trusts(self, address: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        found = _parse(address)
        return found is not None and any(found in network for network in self.networks)

    def find_client(self, scope: Scope) -> str:
        """Return the client's address; the nearest address that is certain, if a proxy says nothing useful."""
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
        """Return the scheme that the client used, `http` or `https`; if a trusted proxy names one, that."""
        client = str((scope.get("client") or ("",))[0])
        said = _find_scheme(Headers(scope=scope)) if self.networks and self.trusts(client) else None
        return said or str(scope.get("scheme", "http"))


def read_proxies(names: Sequence[str]) -> TrustedProxies:
    """Return the proxies of the settings, each an IP address or network."""
    return TrustedProxies(tuple(ip_network(name, strict=False) for name in names))


def _list_hops(headers: Headers) -> list[str]:
    """Return the address that each proxy was called from, that of the first proxy first."""
    forwarded_for = headers.getlist("x-forwarded-for")
    if forwarded_for:
        return [hop.strip() for line in forwarded_for for hop in line.split(",")]
    elements = [element for line in headers.getlist("forwarded") for element in line.split(",")]
    return [found[1].strip('"') if (found := _FOR.search(element)) else "" for element in elements]


def _find_scheme(headers: Headers) -> str | None:
    """Return the scheme over which the nearest proxy was called: `http`, `https`, or `None` if it does not say."""
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
