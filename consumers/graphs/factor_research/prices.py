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
    """(what was read, the cut table as parquet). `path`: a parquet or csv file with a column `date` and a column a ticker (adjusted
    closes); empty: the packaged file. Raises PricesUnreadable."""
    data = _bytes(path)
    cut = last_known_day(as_of)
    frame = _checked(_scan(path, data), path).filter(pl.col("date") <= cut).sort("date").collect()
    if frame.height < SESSIONS_MIN:
        raise PricesUnreadable(f"{path or 'the packaged prices'}: {frame.height} sessions up to {cut}, at least {SESSIONS_MIN} are needed. "
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
    return resources.files(__package__).joinpath("prices.parquet").read_bytes()


def _bytes(path: str) -> bytes:
    if not path:
        return packaged()
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise PricesUnreadable(f"the price file {path!r} cannot be read ({e.strerror}). Give a parquet or csv file.") from e


def _scan(path: str, data: bytes) -> pl.LazyFrame:
    try:
        if path.endswith((".csv", ".csv.gz")):
            return pl.read_csv(io.BytesIO(data), try_parse_dates=True).lazy()
        return pl.read_parquet(io.BytesIO(data)).lazy()
    except (pl.exceptions.PolarsError, OSError) as e:
        raise PricesUnreadable(f"the price file {path!r} is no parquet or csv file that can be read: {str(e).splitlines()[0]}") from e


def _checked(frame: pl.LazyFrame, path: str) -> pl.LazyFrame:
    """With dates, and prices above 0 as floats."""
    schema = frame.collect_schema()
    names = {n.lower(): n for n in schema.names()}
    if "date" not in names or schema[names["date"]] not in (pl.Date, pl.Datetime):
        raise PricesUnreadable(f"the price file {path!r} has no column `date` with days. Columns: {', '.join(schema.names()[:8])}.")
    tickers = sorted(n for n in schema.names() if n != names["date"])
    odd = [n for n in tickers if not schema[n].is_numeric()]
    if odd or len(tickers) < 5:
        raise PricesUnreadable(f"the price file {path!r} needs at least five columns of prices, one a ticker"
                               + (f"; {odd[0]!r} is no column of numbers" if odd else f"; it has {len(tickers)}") + ".")
    prices = [pl.when(pl.col(n) > 0).then(pl.col(n).cast(pl.Float64)).alias(n) for n in tickers]
    return frame.select(pl.col(names["date"]).cast(pl.Date).alias("date"), *prices)
