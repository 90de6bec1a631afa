"""What all tests share: a real PostgreSQL, and a word at the end of the run where there was none."""
from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from postgres import NoPostgres, new_database, server_url

_NONE = "no PostgreSQL to test with"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server whose user may create databases. One a process: under xdist each worker starts its own."""
    try:
        with server_url() as url:
            yield url
    except NoPostgres as e:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{_NONE}: {e}", pytrace=False)
        pytest.skip(f"{_NONE}: {e}")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a new, empty database."""
    with new_database(postgres_server) as url:
        yield url


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if isinstance(r.longrepr, tuple) and _NONE in r.longrepr[2]]
    if skipped:
        terminalreporter.write_sep("=", f"{len(skipped)} tests did NOT run", yellow=True, bold=True)
        terminalreporter.write_line(skipped[0].longrepr[2].removeprefix("Skipped: "), yellow=True)
