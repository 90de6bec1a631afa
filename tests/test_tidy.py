"""Style as a test: what a reviewer would otherwise have to say again."""
from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("schemas", "eventstore", "projections", "consumers", "producers")
LINES_MAX = 400
FUNCTION_MAX = 60
"""Lines of a function without its docstring."""
NO_NAMES = ("utils", "common", "helpers", "manager", "base", "core", "misc")
PLACES = re.compile(r"/(tmp|work|root|home)/[a-z]|pypi\.org/simple|index-url", re.IGNORECASE)
"""Paths of a machine, and package-index hosts."""


def sources(*folders: str) -> list[Path]:
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.py") if "__pycache__" not in p.parts)


CODE = sources(*PACKAGES)


@pytest.mark.parametrize("path", CODE + sources("tests", "infra"), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short_and_named_after_a_concept(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LINES_MAX, f"{path} has {text.count(chr(10))} lines: which concept is missing?"
    assert path.stem not in NO_NAMES
    assert not re.search(r"(?m)^\s*#\s*(def|class|import|return|if|for) ", text), "code that is commented out"


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_short_and_modules_say_what_they_are(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert path.name == "__init__.py" or ast.get_docstring(tree), f"{path} has no docstring"
    for f in functions(tree):
        assert length(f) <= FUNCTION_MAX, f"{path}:{f.lineno} {f.name} has {length(f)} lines"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def length(f: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = f.body[1:] if ast.get_docstring(f) else f.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_our_imports_are_absolute_and_go_one_way(path: Path) -> None:
    here = PACKAGES.index(path.relative_to(ROOT).parts[0])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            parts = (node.module or "").split(".")
            assert parts[0] not in PACKAGES, f"{path}:{node.lineno}: write ledgergraph.{node.module}"
            if parts[0] == "ledgergraph" and len(parts) > 1:
                assert PACKAGES.index(parts[1]) <= here, f"{path}:{node.lineno} imports upwards"


def test_nothing_names_a_machine() -> None:
    files = [p for p in tracked() if p.suffix in (".py", ".md", ".toml", ".txt", ".sql", ".ini", "") and p.name != "test_tidy.py"]
    named = [f"{p.relative_to(ROOT)}: {m.group()}" for p in files if (m := PLACES.search(p.read_text(errors="replace")))]
    assert not named


def tracked() -> list[Path]:
    skip = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "build", "dist", ".hypothesis"}
    return [p for p in ROOT.rglob("*") if p.is_file() and not p.is_symlink() and not skip & set(p.relative_to(ROOT).parts)
            and not any(part.endswith(".egg-info") for part in p.parts)]


def test_every_package_is_shipped() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(settings["tool"]["setuptools"]["packages"])
    found = {"ledgergraph." + ".".join(p.parent.relative_to(ROOT).parts) for f in PACKAGES for p in (ROOT / f).rglob("__init__.py")}
    assert listed == found


def test_the_checkers_read_the_real_folders() -> None:
    links = {p.name: p.resolve() for p in (ROOT / "infra/typing/ledgergraph").iterdir() if p.is_symlink()}
    assert links == {name: ROOT / name for name in PACKAGES}


def test_every_decision_has_its_number() -> None:
    numbers = [int(p.name[:4]) for p in sorted((ROOT / "infra/adr").glob("[0-9]*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))
