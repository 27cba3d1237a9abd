"""Reaching: sends what a webhook is sent, and lets no agent make the server ask what it should not.

A name is resolved once, every address that it has is checked, and one of those is connected to, whatever the name means
a moment later. Redirects are not followed, and what is answered is neither read nor shown.
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
from refdesk.core.retrying import parse_retry_after
from refdesk.errors import InvalidInputError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_CHARACTERS = 2_000
SECONDS = 10.0
"""How long a receiver may take to answer, connecting included."""

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that stand for IPv4 addresses, by which a gateway reaches those."""

_HEADERS = {"User-Agent": f"refdesk/{__version__}", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Reached:
    """What became of one attempt.

    Attributes:
        status: As the receiver answered; 0 where it did not.
        reason: Why it failed, for people; empty where it did not.
        retry_after: Seconds that the receiver asks to wait; `None` where it does not.
    """

    status: int
    reason: str = ""
    retry_after: float | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has it."""
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more, ever."""
        return self.status == 410


class UnreachableError(Exception):
    """It may not be reached, or is nowhere; the message says why."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be reached.

    Attributes:
        networks: Addresses that may be reached although they are private, also over plain HTTP.
        hosts: Names that may mean such addresses.
    """

    networks: Sequence[Network] = ()
    hosts: frozenset[str] = frozenset()

    def check_url(self, url: str) -> None:
        """Return where an agent may have news sent to a URL, as far as can be said without resolving its name.

        Raises:
            InvalidInputError: It may not; the message says why.
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
        """Return whether an address may be reached, by that name."""
        return is_public(address) or self._is_own(address) or self._is_own_host(host)

    def _is_own(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self.networks)

    def _is_own_host(self, host: str) -> bool:
        return host.rstrip(".").lower() in self.hosts

    async def resolve(self, host: str, port: int) -> Address:
        """Return the address to connect to.

        Raises:
            UnreachableError: There is none, or any of those that the name has may not be reached.
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
        """Send a body once, and return what became of it; never raises for what the receiver does."""
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
        # The certificate is checked against the name; only the connection goes to the address that was checked.
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
    """Return what may be reached, given names, addresses and networks that may be although they are private.

    Raises:
        ValueError: One is none of these.
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
    """Return the address that a host is written as, or `None` where it is a name.

    Systems take numbers of other forms for addresses, too (`2130706433`, `0x7f.1`).
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
    """Return whether an address is one of the public internet, and so is the IPv4 address that it stands for."""
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
    wait = parse_retry_after(answer.headers.get("Retry-After"), SystemClock().now())
    reason = "it redirects, which is not followed" if 300 <= status < 400 else f"HTTP {status}"
    return Reached(status, reason, wait)
