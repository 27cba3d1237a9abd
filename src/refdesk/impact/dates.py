"""The days that a text names."""

from __future__ import annotations

import re
from datetime import date

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_ORDINAL = r"(?:\s?(?:st|nd|rd|th))?"
_DATE = re.compile(
    rf"\b(?P<amonth>{MONTH})\s+(?P<aday>\d{{1,2}}){_ORDINAL}\s*,?\s*(?P<ayear>20\d\d)"
    rf"|\b(?P<bday>\d{{1,2}}){_ORDINAL}\s+(?:of\s+)?(?P<bmonth>{MONTH})\s*,?\s*(?P<byear>20\d\d)"
    r"|\b(?P<cyear>20\d\d)-(?P<cmonth>\d\d)-(?P<cday>\d\d)\b"
    r"|\b(?P<dmonth>\d{1,2})/(?P<dday>\d{1,2})/(?P<dyear>20\d\d)\b",
    re.IGNORECASE,
)


def find_dates(text: str) -> list[date]:
    """Return the days that a text names with their year, in order, without those that do not exist."""
    found = (_read(match) for match in _DATE.finditer(text))
    return [day for day in found if day is not None]


def get_month(name: str) -> int:
    """Return the number of a month, 1 to 12, given its name in full or its first three letters or more."""
    return next(number for number, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _read(match: re.Match[str]) -> date | None:
    form = next(form for form in "abcd" if match[f"{form}year"])
    month = match[f"{form}month"]
    try:
        number = int(month) if month.isdigit() else get_month(month)
        return date(int(match[f"{form}year"]), number, int(match[f"{form}day"]))
    except ValueError:
        return None
