"""What tests of whole commands share."""
from __future__ import annotations

from pathlib import Path

import pytest
from command_line import GRAPHS, Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(GRAPHS))
    monkeypatch.delenv("LEDGERGRAPH_LOG", raising=False)
    return Cli(tmp_path)
