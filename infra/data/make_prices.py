"""Makes the packaged price file out of the data set that skfolio ships.

    python infra/data/make_prices.py sp500_dataset.csv.gz consumers/graphs/factor_research/prices.parquet

One row a session (column `date`), one column a ticker, adjusted closes in US dollars as the source has them.
"""
from __future__ import annotations

import sys
from pathlib import Path

import polars as pl


def make(source: Path, target: Path) -> None:
    frame = pl.read_csv(source, try_parse_dates=True).rename({"Date": "date"}).sort("date")
    prices = frame.select("date", *(pl.col(c).cast(pl.Float64) for c in sorted(c for c in frame.columns if c != "date")))
    prices.write_parquet(target, compression="zstd", compression_level=22, statistics=False)
    print(f"{target}: {prices.height} sessions of {prices.width - 1} companies, {prices['date'][0]} to {prices['date'][-1]}, "
          f"{target.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python infra/data/make_prices.py SP500_DATASET_CSV_GZ PRICES_PARQUET")
    make(Path(sys.argv[1]), Path(sys.argv[2]))
