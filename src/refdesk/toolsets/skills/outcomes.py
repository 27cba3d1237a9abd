"""What reported outcomes say of a skill: how well the steps that were followed work, and which version works best.

Reports are counted for the steps that were followed, not for a version number: a version with the same steps goes on
with the reports of the one before, one whose steps differ begins anew. What is known of a rate of success is a Beta
posterior over a uniform prior; its bounds are those of the normal approximation.
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
    """What of a version of a skill is compared."""

    @property
    def version(self) -> int:
        """Its number."""
        ...

    @property
    def playbook(self) -> Playbook:
        """What was followed."""
        ...


BOUND = 1.28
"""Standard deviations from the mean to a bound: nine of ten rates are on its other side."""

FITS = 0.7
"""Share of the best relevance from which on a skill fits as well: outcomes change the order among those only."""

WEIGHT, MOST = 1.2, 0.2
"""How far a score moves with how surely a skill works better or worse than every other time, and how far at most."""

SURE = 0.95
"""Probability from which on one version is held to work worse than another."""

RETURNED, RESTORED = "Went back to the steps of version", "The steps of version"
"""How the changes begin of a version that reports made, or that withdrawing them made."""

LEAST_REPORTS = 5
"""Of steps, before they are compared with others."""

SHARES = {"resolved": (1.0, 0.0), "likely_resolved": (0.5, 0.0), "likely_failed": (0.0, 0.5), "failed": (0.0, 1.0)}
"""What each outcome counts as: success, failure."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Reports of the same steps: successes and failures, half of one where it was only likely."""

    good: float = 0.0
    bad: float = 0.0

    @property
    def count(self) -> float:
        """Of both."""
        return self.good + self.bad

    @property
    def mean(self) -> float:
        """Of the posterior."""
        return (1.0 + self.good) / (2.0 + self.count)

    @property
    def variance(self) -> float:
        """Of the posterior."""
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
"""Weeks with reports of a version that are kept, the newest."""


def name_week(instant: datetime, version: int) -> str:
    """Return the key of a week's reports of a version: the week's Monday (UTC) and the version; they sort by time."""
    day = instant.astimezone(UTC).date()
    return f"{day - timedelta(days=day.weekday())}/{version:06}"


def change_week(weeks: Mapping[str, Tally], week: str, tally: Tally) -> dict[str, Tally]:
    """Return the weeks with another tally of one; a week without reports, and what is too old, is left out."""
    changed = {**weeks, week: tally}
    if week in weeks and tally.count:
        return changed
    kept = sorted(name for name, each in changed.items() if each.count)[-MOST_WEEKS:]
    return {name: changed[name] for name in kept}


def identify(playbook: Playbook) -> str:
    """Return what is the same for playbooks with the same steps to do in the same order, however a model words them."""
    said = "\n".join(step.induced or step.do for step in playbook.steps)
    return hashlib.blake2b(said.encode(), digest_size=6).hexdigest()


def get_surplus(tally: Tally) -> float:
    """Return by how much steps surely work more, or less, often than every other time; 0.0 without reports.

    It is what the lower bound of the posterior has above one half, or what the upper bound lacks of it.
    """
    margin = BOUND * sqrt(tally.variance)
    return max(0.0, tally.mean - margin - 0.5) + min(0.0, tally.mean + margin - 0.5)


def weigh(relevance: float, tally: Tally, random: Random | None = None) -> float:
    """Return by what a skill is ranked: its relevance, moved by how surely its steps work; without reports, as it is.

    Args:
        relevance: In [0, 1].
        tally: Of its present steps.
        random: Draws a rate from the posterior instead of its bounds, so that what is little known gets tried.
    """
    drawn = random.betavariate(1.0 + tally.good, 1.0 + tally.bad) - 0.5 if random is not None else get_surplus(tally)
    return relevance * (1.0 + WEIGHT * min(MOST, max(-MOST, drawn)))


def is_worse(tally: Tally, other: Tally) -> bool:
    """Return whether steps surely work worse than others; false while either has too few reports."""
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
