"""What is built is what is here: wheel and sdist hold every module and data file, and run from a clean folder."""
from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "eventstore", "projections", "consumers", "producers")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def shipped() -> set[str]:
    kinds = ("*.py", "*.sql", "*.parquet", "py.typed")
    return {str(Path("ledgergraph") / p.relative_to(ROOT)) for f in PACKAGES for kind in kinds for p in (ROOT / f).rglob(kind)}


def test_the_wheel_holds_every_file(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert shipped() <= names
    assert not {n.split("/")[0] for n in names} - {"ledgergraph"} - {n.split("/")[0] for n in names if ".dist-info" in n}
    assert any(n.endswith("licenses/NOTICE") for n in names)


def test_the_sdist_holds_every_file(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {n.partition("/")[2] for n in sdist.getnames()}
    assert {s.removeprefix("ledgergraph/") for s in shipped()} <= names


def test_the_wheel_runs_from_elsewhere(built: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target),
                    str(next(built.glob("*.whl")))], check=True)
    code = ("import ledgergraph.consumers, sys; assert str(ledgergraph.consumers.__file__).startswith(sys.argv[1]), ledgergraph.consumers.__file__;"
            "from ledgergraph.producers.cli.main import main; main(['--help'])")
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = [{str(target)!r}, *{sys.path!r}]; {code}", str(target)],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
