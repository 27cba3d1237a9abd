"""Links to the console for whoever runs this server: `refdesk open` asks for one over the local socket."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from refdesk.server.console.sessions import SIGN_IN
from refdesk.server.principals import ADMIN_SCOPE, local_principal

if TYPE_CHECKING:
    from refdesk.app import Desk
    from refdesk.server.console.tickets import Tickets

LIFE = timedelta(hours=12)
"""How long the key that a link gives access with is valid."""

AGENT = "console"


@dataclass(frozen=True, slots=True)
class Links:
    """Where the console is, and how to get in.

    Attributes:
        url: The server's URL.
        tickets: The tickets of the console; `None` if callers need no key.
    """

    url: str
    tickets: Tickets | None = None

    async def make(self, desk: Desk) -> str:
        """Return a URL that opens the console once, signed in as the local user for `LIFE`.

        Raises:
            RefdeskError: No key can be created, because the store cannot be written to.
        """
        if self.tickets is None:
            return f"{self.url}/"
        ring = (await desk.get_base()).keys
        caller = local_principal(desk.settings, desk.toolsets, AGENT)
        until = ring.clock.now() + LIFE
        scopes = sorted(caller.scopes | {ADMIN_SCOPE})  # whoever asks for a link has the command line too
        _, secret = await ring.create(org=caller.org, agent=caller.agent, scopes=scopes, expires_at=until)
        return f"{self.url}{SIGN_IN}?{urlencode({'ticket': self.tickets.issue(secret)})}"
