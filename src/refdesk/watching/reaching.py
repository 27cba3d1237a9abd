"""Reaching: sends requests to webhooks, and prevents agents from making the server contact what it should not.

A name is resolved once, all its addresses are checked, and one of those is connected to, whatever the name resolves to
a moment later. Redirects are not followed, and the body of the answer is neither read nor shown.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import httpx2

from refdesk import __version__
from refdesk.core.clock import SystemClock
from refdesk.core.retrying import read_retry_after
from refdesk.errors import InvalidInputError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_CHARACTERS = 2_000
SECONDS = 10.0
"""How long a receiver may take to answer, connecting included."""

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that stand for IPv4 addresses, which a gateway (NAT64) reaches for them."""

_HEADERS = {"User-Agent": f"refdesk/{__version__}", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Reached:
    """The outcome of one attempt.

    Attributes:
        status: The HTTP status that the receiver answered with; 0 if it did not answer.
        reason: Why the attempt failed, for people to read; empty if it did not.
        retry_after: Seconds that the receiver asks to wait; `None` if it does not.
    """

    status: int
    reason: str = ""
    retry_after: float | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver accepted it."""
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages, ever."""
        return self.status == 410


class UnreachableError(Exception):
    """A host may not be reached, or does not exist; the message says why."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Decides what may be reached, and sends there.

    Attributes:
        networks: Addresses that may be reached although they are private, also over plain HTTP.
        hosts: Names that may resolve to private addresses, also over plain HTTP.
    """

    networks: Sequence[Network] = ()
    hosts: frozenset[str] = frozenset()

    def check_url(self, url: str) -> None:
        """Refuse a URL that news may not be sent to, as far as that is known without resolving its name.

        Raises:
            InvalidInputError: News may not be sent there; the message says why.
        """
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            raise InvalidInputError("A webhook is a URL: write it as https://host/path.") from None
        if not parsed.host or parsed.userinfo or parsed.fragment or len(url) > MOST_CHARACTERS:
            raise InvalidInputError("A webhook needs a host, and takes no user name, password or fragment.")
        address = read_address(parsed.host)
        if address is not None:
            self._require(address)
        elif parsed.host.rstrip(".").lower().endswith("localhost") and not self._is_own_host(parsed.host):
            raise InvalidInputError(_PRIVATE)
        is_own = self._is_own_host(parsed.host) or (address is not None and self._is_own(address))
        if parsed.scheme != "https" and not (parsed.scheme == "http" and is_own):
            raise InvalidInputError("A webhook must begin with https://.")

    def _require(self, address: Address) -> None:
        if not self.may_reach(address):
            raise InvalidInputError(_PRIVATE)

    def may_reach(self, address: Address, host: str = "") -> bool:
        """Return whether an address that a name resolved to may be reached."""
        return is_public(address) or self._is_own(address) or self._is_own_host(host)

    def _is_own(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self.networks)

    def _is_own_host(self, host: str) -> bool:
        return host.rstrip(".").lower() in self.hosts

    async def resolve(self, host: str, port: int) -> Address:
        """Return the address to connect to.

        Raises:
            UnreachableError: There is none, or one of the name's addresses may not be reached.
        """
        literal = read_address(host)
        try:
            found = [literal] if literal is not None else await _look_up(host, port)
        except OSError:
            raise UnreachableError("its name cannot be resolved") from None
        if not found or not all(self.may_reach(address, host) for address in found):
            raise UnreachableError("it is at a private address")
        return found[0]

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reached:
        """Send a body once and return the outcome; whatever the receiver does raises nothing."""
        try:
            with anyio.fail_after(SECONDS):
                return await self._post(url, body, headers)
        except TimeoutError:
            return Reached(0, f"no answer within {SECONDS:g} seconds")
        except UnreachableError as error:
            return Reached(0, str(error))
        except (httpx2.HTTPError, OSError) as error:
            return Reached(0, f"no answer ({type(error).__name__})")

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reached:
        parsed = httpx2.URL(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        address = await self.resolve(parsed.host, port)
        sent = {**_HEADERS, **headers, "Host": parsed.netloc.decode("ascii")}
        # The certificate is checked against the name, while the connection goes to the address that was checked.
        named = {"sni_hostname": parsed.raw_host.decode("ascii")} if read_address(parsed.host) is None else {}
        async with (
            httpx2.AsyncClient(
                timeout=SECONDS, follow_redirects=False, trust_env=False, verify=parsed.scheme == "https"
            ) as client,
            client.stream(
                "POST", parsed.copy_with(host=str(address)), content=body, headers=sent, extensions=named
            ) as answer,
        ):
            return _read(answer)


_PRIVATE = (
    "A webhook may not be at a private, loopback or link-local address. Whoever runs this server can allow one in "
    "REFDESK_WEBHOOK_PRIVATE."
)


def read_reach(allowed: Sequence[str]) -> Reach:
    """Return what may be reached, given the names, addresses and networks that are allowed although private.

    Raises:
        ValueError: One of them is none of these.
    """
    networks, hosts = list[Network](), set[str]()
    for each in allowed:
        try:
            networks.append(ipaddress.ip_network(each, strict=False))
        except ValueError:
            if "/" in each or ":" in each or not each.strip(".-") or len(each.split()) > 1:
                raise
            hosts.add(each.rstrip(".").lower())
    return Reach(tuple(networks), frozenset(hosts))


def read_address(host: str) -> Address | None:
    """Return the address if a host is written as one, or `None` if it is a name.

    Operating systems also accept numbers in other forms as addresses (`2130706433`, `0x7f.1`).
    """
    bare = host.strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(socket.inet_aton(bare))
    except (OSError, UnicodeEncodeError):
        return None


def is_public(address: Address) -> bool:
    """Return whether an address, and any IPv4 address that it stands for, belongs to the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.sixtofour is not None or address.teredo is not None or address in _TRANSLATED:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


async def _look_up(host: str, port: int) -> list[Address]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(place[0]).partition("%")[0]) for *_, place in found]


def _read(answer: httpx2.Response) -> Reached:
    status = answer.status_code
    if 200 <= status < 300:
        return Reached(status)
    wait = read_retry_after(answer.headers, SystemClock().now())
    reason = "it redirects, which is not followed" if 300 <= status < 400 else f"HTTP {status}"
    return Reached(status, reason, wait)
