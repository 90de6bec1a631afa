"""The acceptance tests beside the project, which fix the names and results that users rely on, pass unchanged."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "acceptance"


def test_acceptance() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the acceptance tests are not beside this checkout (../shared/acceptance): they did not run")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
