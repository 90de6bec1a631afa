"""The fingerprint of a node's code: recorded with every attempt. It gates nothing; a replay names it where results differ.

It covers the function's instructions, constants and names, the functions inside it, what it closes over, its defaults, and the arguments
of a partial. It does not follow the names of modules: code that a node calls in another module has versions of its own.
"""
from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, cast

DEPTH_MAX = 8
"""Levels of functions in functions, and of values in values, that are looked at."""
PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))


def fingerprint(action: Callable[..., Any]) -> str:
    """16 hex digits, the same in every process that runs the same code on the same Python version."""
    return hashlib.sha256("\x1f".join(_said(action, 0)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _said(value: Any, depth: int) -> Iterator[str]:
    """What is digested, in one order whatever the process's hash seed."""
    if depth > DEPTH_MAX:
        yield "..."
    elif isinstance(value, functools.partial):
        yield "partial"
        for part in (value.func, list(value.args), value.keywords):
            yield from _said(part, depth + 1)
    elif isinstance(value, types.CodeType):
        yield from _code(value, depth)
    elif isinstance(value, types.FunctionType):
        yield from _function(value, depth)
    elif isinstance(value, types.MethodType):
        yield from _said(value.__func__, depth + 1)
    elif isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, list | tuple):
        for x in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _said(x, depth + 1)
    elif isinstance(value, set | frozenset):
        yield from sorted("\x1e".join(_said(x, depth + 1)) for x in value)  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(value, dict):
        yield from sorted("\x1e".join([*_said(k, depth + 1), *_said(v, depth + 1)])
                          for k, v in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        yield from _object(value, depth)


def _code(code: types.CodeType, depth: int) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    yield from _said(list(code.co_consts), depth + 1)


def _function(f: types.FunctionType, depth: int) -> Iterator[str]:
    inner = inspect.unwrap(f)
    if inner is not f:
        yield from _said(inner, depth + 1)
    yield from _code(f.__code__, depth)
    yield from _said([f.__defaults__, f.__kwdefaults__], depth + 1)
    for cell in f.__closure__ or ():
        try:
            yield from _said(cell.cell_contents, depth + 1)
        except ValueError:
            yield "an empty cell"  # of a function that names itself, while it is made


def _object(value: Any, depth: int) -> Iterator[str]:
    """Of anything else its class, and how it is called."""
    cls = cast(Any, type(value))
    yield f"{cls.__module__}.{cls.__qualname__}"
    call = getattr(cls, "__call__", None)
    if isinstance(call, types.FunctionType):
        yield from _said(call, depth + 1)
