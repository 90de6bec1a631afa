"""What a task sees: the fold of the updates before it, grown from its predecessors' and merged only where they differ.

A field with a reducer keeps its writes as a linked list (`Cell`), ordered by place, that views share. A field without
one keeps the writes that no later one has seen (`heads`): more than one is a conflict. `totals` holds the folded values.
Two views that meet walk their lists back to where they part and fold what follows again, from `base`: the view that they
grew from. Where no common base is at hand they fold from the run's first view: dearer, never different.
"""
from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ledgergraph.projections.schedule import FiringKey

Place = tuple[Any, ...]
"""Where an update stands in the fold."""
Reducers = Mapping[str, Callable[[Any, Any], Any] | None]
BASES_MAX = 8


class Write(NamedTuple):
    """An update of a field without a reducer."""

    place: Place
    key: FiringKey
    value: Any


Sees = Callable[[Write, Write], bool]
"""Whether the first was seen by the second's writer."""


class Cell:
    """An update of a field with a reducer, after those that `parent` leads to."""

    __slots__ = ("parent", "place", "update")

    def __init__(self, place: Place, update: Any, parent: Cell | None) -> None:
        self.place, self.update, self.parent = place, update, parent


Trail = Cell | tuple[Write, ...] | None


class View:
    """The folded state after a set of updates. Never changed once made."""

    __slots__ = ("base", "conflicted", "depth", "shares", "totals", "trails")

    def __init__(self, totals: dict[str, Any], trails: dict[str, Trail], base: View | None = None,
                 conflicted: frozenset[str] = frozenset()) -> None:
        self.totals, self.trails, self.base = totals, trails, base
        self.conflicted = conflicted
        """Fields with writes that did not see one another and that no later one has settled."""
        self.shares = 0
        """How many firings grow from it."""
        self.depth: int = base.depth + 1 if base is not None else 0

    def conflicts(self) -> dict[str, tuple[Write, ...]]:
        """The writes of the conflicted fields."""
        return {f: _heads(self.trails[f]) for f in sorted(self.conflicted)}


def extend(view: View, update: Mapping[str, Any], key: FiringKey, place: Place, reducers: Reducers) -> View:
    """The view with one more update, whose writer saw all that the view holds."""
    if not update:
        return view
    totals, trails = view.totals.copy(), view.trails.copy()
    for field, value in update.items():
        reduce = reducers[field]
        if reduce is None:
            trails[field] = (Write(place, key, value),)
            totals[field] = value
        else:
            trail = trails.get(field)
            trails[field] = Cell(place, value, trail if isinstance(trail, Cell) else None)
            totals[field] = reduce(totals[field], value) if field in totals else value
    return View(totals, trails, view if view.shares > 1 else view.base, view.conflicted - update.keys())


def merge(views: Sequence[View], sees: Sees, reducers: Reducers, first: View, *, join: bool = True) -> View:
    """The view of all that the given ones hold. `first`: the run's first view, which all grew from. `join`: whether a
    task goes on from it, so that the branches have met."""
    views = list(dict.fromkeys(views))
    if len(views) == 1:
        return views[0]
    base = _common_base(views)
    totals, trails = views[0].totals.copy(), views[0].trails.copy()
    for field in dict.fromkeys(f for v in views for f in v.trails):
        distinct = list({id(v.trails.get(field)): v for v in views}.values())
        if len(distinct) == 1:
            continue
        if reducers[field] is None:
            _merge_heads(field, distinct, sees, totals, trails)
        else:
            _merge_cells(field, distinct, reducers[field], base, first, totals, trails)
    conflicted = frozenset(f for f, t in trails.items() if isinstance(t, tuple) and len(t) > 1)
    return View(totals, trails, _base_after(base, len(views)) if join else base, conflicted)


def _merge_heads(field: str, views: Sequence[View], sees: Sees, totals: dict[str, Any], trails: dict[str, Trail]) -> None:
    writes: dict[Place, Write] = {w.place: w for v in views for w in _heads(v.trails.get(field))}
    left = tuple(w for _, w in sorted(writes.items(), key=_by_place)
                 if not any(w is not x and sees(w, x) for x in writes.values()))
    trails[field] = left
    totals[field] = left[-1].value


def _by_place(item: tuple[Place, Write]) -> Place:
    return item[0]


def _heads(trail: Trail) -> tuple[Write, ...]:
    return trail if isinstance(trail, tuple) else ()


def _merge_cells(field: str, views: Sequence[View], reduce: Callable[[Any, Any], Any] | None, base: View | None, first: View,
                 totals: dict[str, Any], trails: dict[str, Trail]) -> None:
    assert reduce is not None
    cells = [t if isinstance(t := v.trails.get(field), Cell) else None for v in views]
    part, tail = _tails(cells)
    for v, cell in zip(views, cells, strict=True):
        if cell is not None and _length_to(cell, part) == len(tail):
            trails[field], totals[field] = cell, v.totals[field]
            return
    known, total = _total_at(field, part, base, first, reduce)
    for place, update in tail:
        total = reduce(total, update) if known else update
        known = True
        part = Cell(place, update, part)
    trails[field], totals[field] = part, total


def _length_to(cell: Cell | None, part: Cell | None) -> int:
    n = 0
    while cell is not part:
        assert cell is not None
        n, cell = n + 1, cell.parent
    return n


def _tails(cells: Sequence[Cell | None]) -> tuple[Cell | None, list[tuple[Place, Any]]]:
    """Where the lists part, and the writes after that, in order, each once."""
    known = {id(c): c for c in cells if c is not None}
    heads = sorted((c.place, n, c) for n, c in enumerate(known.values()))
    empty = any(c is None for c in cells)
    tail: list[tuple[Place, Any]] = []
    while len(heads) + empty > 1:
        last, _, cell = heads.pop()
        tail.append((last, cell.update))
        parents = [cell.parent]
        while heads and heads[-1][0] == last:
            parents.append(heads.pop()[2].parent)
        for p in parents:
            if p is None:
                empty = True
            elif id(p) not in known:
                known[id(p)] = p
                insort(heads, (p.place, len(known), p))
    return heads[0][2] if heads else None, tail[::-1]


def _total_at(field: str, cell: Cell | None, base: View | None, first: View, reduce: Callable[[Any, Any], Any]) -> tuple[bool, Any]:
    """(whether there is one, the folded value after `cell`)."""
    after: list[Any] = []
    while True:
        for known in (base, first):
            if known is not None and known.trails.get(field) is cell:
                return _fold(field in known.totals, known.totals.get(field), after, reduce)
        if cell is None:
            return _fold(False, None, after, reduce)
        after.append(cell.update)
        cell = cell.parent


def _fold(known: bool, total: Any, newest_first: list[Any], reduce: Callable[[Any, Any], Any]) -> tuple[bool, Any]:
    for update in reversed(newest_first):
        total = reduce(total, update) if known else update
        known = True
    return known, total


def _bases(view: View) -> Iterable[View]:
    v: View | None = view
    while v is not None:
        yield v
        v = v.base


def _common_base(views: Sequence[View]) -> View | None:
    sets = [set(map(id, _bases(v))) for v in views[1:]]
    return next((b for b in _bases(views[0]) if all(id(b) in s for s in sets)), None)


def _base_after(base: View | None, met: int) -> View | None:
    """What a merged view grows from: the common base as long as others that grew from it have not met yet."""
    if base is None:
        return None
    base.shares -= met - 1
    if base.shares <= 1:
        base = base.base
    return base if base is None or base.depth < BASES_MAX else None
