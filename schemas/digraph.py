"""Small graph algorithms over names: components, a topological order, and who reaches whom as bit sets."""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

Edges = set[tuple[str, str]]
Successors = Mapping[str, Sequence[str]]


def successors(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Each node's successors among the nodes."""
    out: dict[str, list[str]] = {n: [] for n in nodes}
    for u, v in sorted(edges):
        if u in out and v in out:
            out[u].append(v)
    return out


def within(part: Sequence[str], after: Successors) -> Edges:
    """The edges among the nodes of a part."""
    inside = set(part)
    return {(u, v) for u in part for v in after[u] if v in inside}


def components(nodes: Sequence[str], after: Successors) -> list[list[str]]:
    """Strongly connected components, each after all that it leads to (R. Tarjan, Depth-first search and linear graph algorithms,
    1972, without recursion); the nodes of each in the order of `nodes`."""
    place = {n: i for i, n in enumerate(nodes)}
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    out: list[list[str]] = []
    for root in nodes:
        if root in number:
            continue
        work = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        path.append(root)
        on_path.add(root)
        while work:
            u, rest = work[-1]
            v = next(rest, None)
            if v is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[u])
                if low[u] == number[u]:
                    out.append(_popped(u, path, on_path, place))
            elif v not in number:
                number[v] = low[v] = len(number)
                path.append(v)
                on_path.add(v)
                work.append((v, iter(after[v])))
            elif v in on_path:
                low[u] = min(low[u], number[v])
    return out


def _popped(u: str, path: list[str], on_path: set[str], place: Mapping[str, int]) -> list[str]:
    at = path.index(u) if path[-1] != u else len(path) - 1
    part = path[at:]
    del path[at:]
    on_path.difference_update(part)
    return sorted(part, key=place.__getitem__)


def in_order(nodes: Sequence[str], after: Successors) -> list[list[str]]:
    """The components, those that come before first; where there is a choice, in the order of `nodes`."""
    parts = components(nodes, after)
    place = {n: i for i, n in enumerate(nodes)}
    of = {n: i for i, p in enumerate(parts) for n in p}
    onward: list[set[int]] = [{of[v] for u in p for v in after[u]} - {i} for i, p in enumerate(parts)]
    waits = [0] * len(parts)
    for vs in onward:
        for v in vs:
            waits[v] += 1
    free = [(place[p[0]], i) for i, p in enumerate(parts) if not waits[i]]
    heapq.heapify(free)
    out: list[list[str]] = []
    while free:
        _, i = heapq.heappop(free)
        out.append(parts[i])
        for v in onward[i]:
            waits[v] -= 1
            if not waits[v]:
                heapq.heappush(free, (place[parts[v][0]], v))
    return out


def reached(nodes: Sequence[str], after: Successors) -> dict[str, int]:
    """What each node leads to, itself included, as a bit set; bit i is the i-th of `nodes`."""
    bit = {n: 1 << i for i, n in enumerate(nodes)}
    out: dict[str, int] = {}
    for part in components(nodes, after):
        mask = 0
        for u in part:
            mask |= bit[u]
            for v in after[u]:
                mask |= out.get(v, 0)
        out.update(dict.fromkeys(part, mask))
    return out


def reversed_(nodes: Iterable[str], after: Successors) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {n: [] for n in nodes}
    for u, vs in after.items():
        for v in vs:
            out[v].append(u)
    return out


def short_cycle(part: Sequence[str], after: Successors) -> list[str]:
    """A shortest cycle through the first node of a component of at least two nodes."""
    inside, start = set(part), part[0]
    back: dict[str, str] = {}
    todo = [start]
    for u in todo:
        for v in after[u]:
            if v == start and u != start:
                path = [u]
                while path[-1] != start:
                    path.append(back[path[-1]])
                return path[::-1]
            if v in inside and v not in back and v != start:
                back[v] = u
                todo.append(v)
    raise AssertionError(f"{start!r} lies on no cycle")
