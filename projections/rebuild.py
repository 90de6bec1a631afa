"""The rows of runs, tasks and questions, folded anew from the log: the same rows that were written with it."""
from __future__ import annotations

from ledgergraph.eventstore.store import EventStore, Rows, RunRow
from ledgergraph.projections.history import History
from ledgergraph.projections.rows import all_rows, changed_rows
from ledgergraph.schemas.ids import StreamId

PAGE = 5_000


def streams_of(store: EventStore) -> list[StreamId]:
    """Every stream, in the order of its first event."""
    seen: dict[StreamId, None] = {}
    after = 0
    while page := store.read_all(after, PAGE):
        seen.update(dict.fromkeys(e.stream for e in page))
        after = page[-1].position or 0
    return list(seen)


def rows_from_log(store: EventStore) -> Rows:
    """What the rows must be, by the log alone."""
    past = History(store)
    parts = [stream_rows(past, s) for s in streams_of(store)]
    return Rows(tuple(t for p in parts for t in p.put_tasks), (), tuple(r for p in parts for r in p.put_runs),
                tuple(q for p in parts for q in p.put_questions), ())


def stream_rows(past: History, stream: StreamId) -> Rows:
    """The rows of a stream: of its last run, what is open; of every run, how it stood last."""
    state = past.load(stream, 0).state
    runs: dict[str, RunRow] = {}
    for stored, event in past.events(stream):
        state.evolve(event, stored.recorded_at)
        runs.update({r.run: r for r in changed_rows(state).put_runs})
    return all_rows(state)._replace(put_runs=tuple(runs.values()))


def rebuild(store: EventStore) -> dict[str, int]:
    """Drops the rows and puts those of the log; how many of each there are."""
    rows = rows_from_log(store)
    store.replace_rows(rows)
    return {"runs": len(rows.put_runs), "tasks": len(rows.put_tasks), "questions": len(rows.put_questions)}
