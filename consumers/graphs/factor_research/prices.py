"""Daily prices: a file is read once, cut at what was known by the run's as_of, and the cut goes into the log."""
from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from importlib import resources
from pathlib import Path

import polars as pl

from ledgergraph.schemas.as_of import MARKET
from ledgergraph.schemas.errors import InvalidInput

CLOSE = time(16, 0)
"""From then on a session's price is known, in the market's zone."""
SESSIONS_MIN = 2_000
"""Below it no factor has 120 months to be judged by."""
COMPANIES_MIN = 5
"""Below it no month has a rank correlation."""


class PricesUnreadable(InvalidInput):
    """A price file that cannot be used."""


@dataclass(frozen=True)
class Facts:
    """What was read."""

    source: str
    """The packaged file, or the path that was given."""
    digest: str
    """SHA-256 of the whole file, so also of what lies after as_of."""
    cut: date
    """Rows of later days were not read."""
    first: date
    last: date
    """The last session used."""
    sessions: int
    companies: int
    missing: int
    """Prices that are not there, of sessions x companies."""


def last_known_day(as_of: datetime) -> date:
    """The last day whose closing prices were known."""
    here = as_of.astimezone(MARKET)
    return here.date() if here.time() >= CLOSE else here.date() - timedelta(days=1)


def read(path: str, as_of: datetime) -> tuple[Facts, bytes]:
    """(what was read, the cut table as parquet). `path`: a parquet or csv file of adjusted closes with a column `date` and a
    column a ticker, or with a row a price and columns `date`, `ticker`, `price`; empty: the packaged file. What stands after
    as_of, be it text or nothing at all, changes only the digest. Raises PricesUnreadable."""
    data = _bytes(path)
    cut = last_known_day(as_of)
    frame = _checked(_until(_scan(path, data), cut, path), path)
    if frame.height < SESSIONS_MIN:
        raise PricesUnreadable(f"{_shown(path)} has {frame.height} sessions up to {cut}, at least {SESSIONS_MIN} are needed. "
                               "Give a later --as-of, or a file that begins earlier.")
    tickers = [c for c in frame.columns if c != "date"]
    missing = sum(frame[c].null_count() for c in tickers)
    first, last = frame["date"][0], frame["date"][-1]
    facts = Facts(path or "packaged", hashlib.sha256(data).hexdigest(), cut, first, last, frame.height, len(tickers), missing)
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd")
    return facts, out.getvalue()


@lru_cache(maxsize=4)
def table(data: bytes) -> pl.DataFrame:
    """The cut table: one row a session, in order."""
    return pl.read_parquet(io.BytesIO(data))


def packaged() -> bytes:
    return resources.files(__package__ or "").joinpath("prices.parquet").read_bytes()


def _bytes(path: str) -> bytes:
    if not path:
        return packaged()
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise PricesUnreadable(f"{_shown(path)} cannot be read ({e.strerror}). Give a parquet or csv file.") from e


def _shown(path: str) -> str:
    return f"the price file {path!r}" if path else "the packaged price file"


def _scan(path: str, data: bytes) -> pl.DataFrame:
    """The file as it is; a csv file's columns as texts."""
    try:
        if path.endswith((".csv", ".csv.gz")):
            return pl.read_csv(io.BytesIO(data), infer_schema=False)
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as e:
        raise PricesUnreadable(f"{_shown(path)} is no parquet or csv file that can be read: {str(e).splitlines()[0]}") from e


def _until(frame: pl.DataFrame, cut: date, path: str) -> pl.DataFrame:
    """The sessions up to a day, in order, without the companies that had no price by then. No other column was looked at."""
    known = _wide(_dated(frame, path).filter(pl.col("date") <= cut).sort("date"), path)
    twice = known["date"].filter(known["date"].is_duplicated())
    if len(twice):
        raise PricesUnreadable(f"{_shown(path)} has the day {twice[0]} more than once. Leave one row a session.")
    return known.select("date", *(n for n in sorted(known.columns) if n != "date" and known[n].null_count() < known.height))


def _dated(frame: pl.DataFrame, path: str) -> pl.DataFrame:
    """With a column `date` of days. A time with a zone is of the day that it has in its zone."""
    name = next((n for n in frame.columns if n.lower() == "date"), "")
    kind = frame.schema[name].base_type() if name else None
    if kind is pl.String:
        day = pl.col(name).str.slice(0, 10).str.to_date("%Y-%m-%d")
    elif kind in (pl.Date, pl.Datetime):
        day = pl.col(name).dt.date()
    else:
        raise PricesUnreadable(f"{_shown(path)} has no column `date` with days. Columns: {', '.join(frame.columns[:8])}.")
    try:
        dated = frame.with_columns(day.alias(name)).rename({name: "date"})
    except pl.exceptions.PolarsError as e:
        raise PricesUnreadable(f"{_shown(path)} has days that are not written as 2010-06-30: {str(e).splitlines()[0]}") from e
    if dated["date"].null_count():
        raise PricesUnreadable(f"{_shown(path)} has a row without a day.")
    return dated


def _wide(known: pl.DataFrame, path: str) -> pl.DataFrame:
    """A table with a row a price as one with a column a ticker."""
    names = {n.lower(): n for n in known.columns}
    if "ticker" not in names:
        return known
    if "price" not in names:
        columns = ", ".join(known.columns[:8])
        raise PricesUnreadable(f"{_shown(path)} has a column `ticker` and none called `price`. Columns: {columns}.")
    rows = known.select("date", pl.col(names["ticker"]).alias("ticker"), pl.col(names["price"]).alias("price"))
    if rows["ticker"].null_count():
        raise PricesUnreadable(f"{_shown(path)} has a row without a ticker.")
    twice = rows.filter(rows.select("date", "ticker").is_duplicated())
    if twice.height:
        day, ticker, _ = twice.row(0)
        raise PricesUnreadable(f"{_shown(path)} has the price of {ticker} on {day} more than once. Leave one.")
    return rows.pivot(on="ticker", index="date", values="price").sort("date")


def _checked(known: pl.DataFrame, path: str) -> pl.DataFrame:
    """With prices above 0 as floats; what is none is missing."""
    tickers = [n for n in known.columns if n != "date"]
    odd = [n for n in tickers if not (known.schema[n].is_numeric() or known.schema[n] == pl.String)]
    if odd:
        raise PricesUnreadable(f"{_shown(path)} has the column {odd[0]!r}, which holds no numbers. "
                               "Leave prices only, one column a ticker.")
    try:
        numbers = known.with_columns(pl.col(n).cast(pl.Float64) for n in tickers)
    except pl.exceptions.PolarsError as e:
        raise PricesUnreadable(f"{_shown(path)} has a price that is no number: {str(e).splitlines()[0]}") from e
    prices = numbers.with_columns(pl.when(pl.col(n).is_finite() & (pl.col(n) > 0)).then(pl.col(n)).alias(n) for n in tickers)
    priced = [n for n in tickers if prices[n].null_count() < prices.height]
    if len(priced) < COMPANIES_MIN:
        raise PricesUnreadable(f"{_shown(path)} needs at least {COMPANIES_MIN} columns of prices, one a ticker; "
                               f"it has {len(priced)}.")
    return prices.select("date", *priced)
