"""What reported outcomes say about a skill: how well the steps that were followed work, and which version works best.

Reports are counted for the steps that were followed, not for a version number: a version with the same steps inherits
the reports of the one before, and one with different steps starts without any. What is known about a success rate is
its Beta posterior from a uniform prior; the bounds used are those of the normal approximation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta
from math import erf, sqrt
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from refdesk.playbooks import Playbook


class Version(Protocol):
    """The part of a skill's version that comparisons need."""

    @property
    def version(self) -> int:
        """Its number."""
        ...

    @property
    def playbook(self) -> Playbook:
        """What was followed."""
        ...


BOUND = 1.28
"""Standard deviations from the mean to a bound: with a probability of 0.9 the rate is on the mean's side of it."""

FITS = 0.7
"""Share of the best relevance from which a skill fits about as well: outcomes change the order only among those."""

WEIGHT, MOST = 1.2, 0.2
"""How much a score moves by the surplus of a skill's steps (see `get_surplus`), and the most surplus that counts."""

SURE = 0.95
"""Probability from which one version is held to work worse than another."""

RETURNED, RESTORED = "Went back to the steps of version", "The steps of version"
"""How the changes of a version begin that was made by reports, or by withdrawing them."""

LEAST_REPORTS = 5
"""Fewest reports on steps before they are compared with others."""

SHARES = {"resolved": (1.0, 0.0), "likely_resolved": (0.5, 0.0), "likely_failed": (0.0, 0.5), "failed": (0.0, 1.0)}
"""What each outcome counts as: its shares of a success and of a failure."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Reports on the same steps: successes and failures, where one that was only likely counts half."""

    good: float = 0.0
    bad: float = 0.0

    @property
    def count(self) -> float:
        """Successes and failures together."""
        return self.good + self.bad

    @property
    def mean(self) -> float:
        """The mean of the posterior."""
        return (1.0 + self.good) / (2.0 + self.count)

    @property
    def variance(self) -> float:
        """The variance of the posterior."""
        return self.mean * (1.0 - self.mean) / (3.0 + self.count)

    def add(self, outcome: str) -> Tally:
        """Return the tally with one more report."""
        good, bad = SHARES[outcome]
        return Tally(self.good + good, self.bad + bad)

    def take(self, outcome: str) -> Tally:
        """Return the tally with one report less."""
        good, bad = SHARES[outcome]
        return Tally(max(0.0, self.good - good), max(0.0, self.bad - bad))


UNKNOWN = Tally()

MOST_WEEKS = 200
"""Most weekly tallies that are kept of a skill, one for each week and version: the newest."""


def name_week(instant: datetime, version: int) -> str:
    """Return the key of a week's reports on a version: the week's Monday (UTC) and the version; keys sort by time."""
    day = instant.astimezone(UTC).date()
    return f"{day - timedelta(days=day.weekday())}/{version:06}"


def change_week(weeks: Mapping[str, Tally], week: str, tally: Tally) -> dict[str, Tally]:
    """Return the weeks with a new tally for one of them; weeks without reports and those too old are left out."""
    changed = {**weeks, week: tally}
    if week in weeks and tally.count:
        return changed
    kept = sorted(name for name, each in changed.items() if each.count)[-MOST_WEEKS:]
    return {name: changed[name] for name in kept}


def identify(playbook: Playbook) -> str:
    """Return a digest that is equal for playbooks with the same steps in the same order, however a model words them."""
    said = "\n".join(step.induced or step.do for step in playbook.steps)
    return hashlib.blake2b(said.encode(), digest_size=6).hexdigest()


def get_surplus(tally: Tally) -> float:
    """Return by how much the success rate of steps is surely above or, if negative, below one half.

    It is the distance of the posterior's lower bound above one half, or of its upper bound below; 0.0 if one half is
    between them, as without reports.
    """
    margin = BOUND * sqrt(tally.variance)
    return max(0.0, tally.mean - margin - 0.5) + min(0.0, tally.mean + margin - 0.5)


def weigh(relevance: float, tally: Tally, random: Random | None = None) -> float:
    """Return the score that a skill is ranked by: its relevance, moved by how surely its steps work.

    Args:
        relevance: In [0, 1].
        tally: That of its present steps; without reports the relevance is returned as it is, unless `random` is given.
        random: Draws the rate from the posterior in place of its bounds, so that skills with few reports get tried.
    """
    drawn = random.betavariate(1.0 + tally.good, 1.0 + tally.bad) - 0.5 if random is not None else get_surplus(tally)
    return relevance * (1.0 + WEIGHT * min(MOST, max(-MOST, drawn)))


def is_worse(tally: Tally, other: Tally) -> bool:
    """Return whether steps surely work worse than others; false while either of them has too few reports."""
    if min(tally.count, other.count) < LEAST_REPORTS:
        return False
    distance = (other.mean - tally.mean) / sqrt(tally.variance + other.variance)
    return 0.5 * (1.0 + erf(distance / sqrt(2.0))) >= SURE


def describe_return(bad: Version, good: Version, tallies: Mapping[str, Tally]) -> str:
    """Return why a skill went back to an earlier version, for people to read."""
    of_bad, of_good = (tallies.get(identify(each.playbook), UNKNOWN) for each in (bad, good))
    return (
        f"{RETURNED} {good.version}: those of version {bad.version} worked in {of_bad.good:g} "
        f"of {of_bad.count:g} reported conversations, those of version {good.version} in {of_good.good:g} of "
        f"{of_good.count:g}."
    )
