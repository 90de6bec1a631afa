"""A node's fingerprint changes with its code, and with nothing else."""
from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ledgergraph.consumers.code import fingerprint


def made(factor: Any, inner: Callable[..., Any] = len) -> Callable[..., Any]:
    def node(s: Any) -> Any:
        return inner(s) * factor
    return node


def test_it_is_the_same_for_the_same_code_and_another_for_other_code() -> None:
    same = [made(2), made(2), made(3), made({"a", "b"}), made(2, lambda s: 1), made(2, lambda s: 2)]
    found = [fingerprint(f) for f in same]
    assert found[0] == found[1]
    assert len(set(found)) == 5
    assert fingerprint(lambda s: 1) != fingerprint(lambda s: 2)
    assert fingerprint(functools.partial(made, 1)) != fingerprint(functools.partial(made, 2))


def test_defaults_wrapped_functions_methods_and_callables_count() -> None:
    def plain(s: Any, n: int = 1) -> int:
        return n

    def other(s: Any, n: int = 2) -> int:
        return n

    @functools.wraps(plain)
    def wrapped(*a: Any) -> int:
        return plain(*a)

    class Node:
        def __call__(self, s: Any) -> int:
            return 1

        def method(self, s: Any) -> int:
            return 2
    assert len({fingerprint(f) for f in (plain, other, wrapped, Node(), Node().method)}) == 5
    assert fingerprint(Node()) == fingerprint(Node())


def test_it_does_not_depend_on_the_process() -> None:
    program = ("from ledgergraph.consumers.code import fingerprint\n"
               "print(fingerprint(lambda s: s in {'a', 'b', 'c', 'd'} and {'x': {1, 2}}))")
    found = {subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True,
                            check=True).stdout for seed in (1, 2, 3)}
    assert len(found) == 1
