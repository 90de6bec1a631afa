"""What `as_of` may be: a date is the end of that day in the market's zone, a time has its zone, neither is in the future."""
from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from ledgergraph.schemas.errors import InvalidAsOf

MARKET = ZoneInfo("America/New_York")
LAST = time(23, 59, 59, 999_999)


def parse_as_of(given: str | date | datetime | None, now: datetime, zone: ZoneInfo = MARKET) -> datetime | None:
    """The instant, aware; None for None. Raises InvalidAsOf for what cannot be read, has no zone, or lies after `now`.
    A date may be today's: then it is `now`, since its end is not known yet."""
    if given is None:
        return None
    value = _read(given)
    if not isinstance(value, datetime):
        day = datetime.combine(value, LAST, zone)
        if value == now.astimezone(zone).date():
            return now
        value = day
    elif value.tzinfo is None:
        raise InvalidAsOf(given, "it is a time without a zone")
    if value > now:
        raise InvalidAsOf(given, f"it is in the future (now is {now.astimezone(UTC):%Y-%m-%d %H:%M} UTC)")
    return value


def _read(given: str | date | datetime) -> date | datetime:
    if not isinstance(given, str):
        if isinstance(given, date):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
            return given
        raise InvalidAsOf(given, f"it is a {type(given).__name__}")
    text = given.strip()
    try:
        return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
    except ValueError:
        raise InvalidAsOf(given, "it is no ISO 8601 date or time") from None
