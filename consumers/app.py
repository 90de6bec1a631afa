"""A compiled graph over a log: what users call. Each method is a few decisions offered to one stream's ledger."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from ledgergraph.consumers import driving, edits, snapshots
from ledgergraph.consumers.binding import Binding, Durability
from ledgergraph.consumers.command import Command, Interrupt
from ledgergraph.consumers.ledger import Ledger
from ledgergraph.consumers.liveness import Identity
from ledgergraph.consumers.runner import Chunk, Options, Runner
from ledgergraph.consumers.snapshots import Config, StateSnapshot
from ledgergraph.consumers.stopped import raise_stopped
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections import thread_end
from ledgergraph.projections.history import History, Loaded
from ledgergraph.schemas.as_of import parse_as_of
from ledgergraph.schemas.copying import fresh
from ledgergraph.schemas.errors import InvalidInput, QuestionError, RunNotFound, WrongExpectedVersion
from ledgergraph.schemas.events.question import QuestionAnswered
from ledgergraph.schemas.ids import RunId, StreamId, ThreadId, new_id, new_run_id, thread_id, thread_stream

AsOf = str | date | datetime | None
StreamMode = str | Sequence[str]
MODES = ("values", "updates", "custom")
REBASE_MAX = 50
"""How often a caller's decision is offered again to a stream that others write to."""


class App:
    """The application. Every call may come from any thread; one run is driven by one caller at a time."""

    def __init__(self, binding: Binding, log: str | Path | EventStore | None, durability: Durability, concurrency: int) -> None:
        self.binding, self.concurrency = binding, concurrency
        self.durability: Durability = durability
        self._log = log
        self._opened: tuple[EventStore, History, Identity] | None = None
        self._lock = threading.Lock()

    # The log

    @property
    def store(self) -> EventStore:
        return self._open()[0]

    @property
    def history(self) -> History:
        return self._open()[1]

    def _open(self) -> tuple[EventStore, History, Identity]:
        if self._opened is None:
            with self._lock:
                if self._opened is None:
                    store = open_store(_url(self._log)) if self._log is None or isinstance(self._log, str | Path) else self._log
                    past = History(store)
                    past.know(self.binding.spec)
                    store.put_artifact(self.binding.spec.encoded)
                    self._opened = store, past, Identity(store)
        return self._opened

    @property
    def opened(self) -> bool:
        """Whether it has been used: the log is opened when it is first needed."""
        return self._opened is not None

    def close(self) -> None:
        """Lets go of the log; what runs elsewhere goes on."""
        if self._opened is not None:
            self._opened[2].close()
            self._opened[0].close()
            self._opened = None

    # Runs

    def invoke(self, input: Any, config: Config | None = None, *, thread_id: str | None = None, as_of: AsOf = None,
               durability: Durability | None = None, max_steps: int | None = None, actor: str = "") -> dict[str, Any]:
        """Starts a run with an input, goes on with None, or answers with Command(resume=...). Returns the state; with open
        questions under `__interrupt__` where it waits for people.

        Raises ThreadBusy, GraphRecursionError (a cap), the error of the node that failed, and InvalidInput's kinds."""
        runner = self._runner(input, config, thread_id, as_of, durability, max_steps, actor, frozenset(), None)
        for _ in self._driven(runner):
            pass
        return self._result(runner)

    async def ainvoke(self, input: Any, config: Config | None = None, *, thread_id: str | None = None, as_of: AsOf = None,
                      durability: Durability | None = None, max_steps: int | None = None, actor: str = "") -> dict[str, Any]:
        """`invoke`; async nodes run on the caller's event loop."""
        loop = asyncio.get_running_loop()

        def work() -> dict[str, Any]:
            runner = self._runner(input, config, thread_id, as_of, durability, max_steps, actor, frozenset(), loop)
            for _ in self._driven(runner):
                pass
            return self._result(runner)
        return await asyncio.to_thread(work)

    def stream(self, input: Any, config: Config | None = None, *, stream_mode: StreamMode = "updates", thread_id: str | None = None,
               as_of: AsOf = None, durability: Durability | None = None, max_steps: int | None = None, actor: str = "",
               _loop: asyncio.AbstractEventLoop | None = None) -> Iterator[Any]:
        """Yields as nodes finish: `updates` {node: update}, `values` the whole state, `custom` what nodes send; with a list of
        modes, (mode, chunk). A question shows as {"__interrupt__": (...)}. Whatever is yielded is durable."""
        modes = (stream_mode,) if isinstance(stream_mode, str) else tuple(stream_mode)
        for m in modes:
            if m not in MODES:
                raise InvalidInput(f"stream_mode {m!r} is not known. Known: {', '.join(MODES)}.")
        runner = self._runner(input, config, thread_id, as_of, durability, max_steps, actor, frozenset(modes), _loop)
        if "values" in modes:
            runner.chunks.append(("values", dict(runner.run.view().totals)))
        single = isinstance(stream_mode, str)
        for chunk in self._driven(runner):
            yield chunk[1] if single else chunk
        state = self._result(runner)
        if "__interrupt__" in state:
            chunk = ("updates" if "updates" in modes else modes[0], {"__interrupt__": state["__interrupt__"]})
            yield chunk[1] if single else chunk

    async def astream(self, input: Any, config: Config | None = None, **options: Any) -> AsyncIterator[Any]:
        """`stream` for async callers."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        stop = threading.Event()

        def pump() -> None:
            try:
                for chunk in self.stream(input, config, _loop=loop, **options):
                    loop.call_soon_threadsafe(queue.put_nowait, ("chunk", chunk))
                    if stop.is_set():
                        return
                loop.call_soon_threadsafe(queue.put_nowait, ("end", None))
            except BaseException as e:
                loop.call_soon_threadsafe(queue.put_nowait, ("error", e))
        work = asyncio.ensure_future(asyncio.to_thread(pump))
        try:
            while (message := await queue.get())[0] == "chunk":
                yield message[1]
            if message[0] == "error":
                raise message[1]
        finally:
            stop.set()
            await work

    def _runner(self, input: Any, config: Config | None, thread: str | None, as_of: AsOf, durability: Durability | None,
                max_steps: int | None, actor: str, modes: frozenset[str], loop: asyncio.AbstractEventLoop | None) -> Runner:
        store, _, identity = self._open()
        name = self._thread(config, thread)
        configured = (config or {}).get("configurable", {})
        max_steps = max_steps or (config or {}).get("recursion_limit")
        moment = parse_as_of(as_of if as_of is not None else configured.get("as_of"), datetime.now(UTC))
        pipelined = (durability or self.durability) == "pipelined"
        start = driving.Start(new_run_id(), name, input, moment.isoformat() if moment else None, max_steps, configured.get("labels"))
        for _ in range(REBASE_MAX):
            ledger = Ledger(store, self._shown(config, name), pipelined, actor)
            self._offer(ledger, input, start)
            runner = self._made(ledger, Options(identity.name, self.concurrency, "custom" not in modes, loop, modes), ledger.state.stream)
            try:
                runner.launched = runner.commit_first()
                return runner
            except WrongExpectedVersion:
                runner.abandon()
        raise InvalidInput(f"thread {name!r} is written to by others without a pause; try again.")

    def _offer(self, ledger: Ledger, input: Any, start: driving.Start) -> None:
        identity = self._open()[2]

        def lives(worker: str) -> bool:
            return identity.lives(worker, ledger.state.stream)
        if isinstance(input, Command):
            if not input.answers:
                raise InvalidInput("invoke(Command(...)) needs resume=, the answer to the run's question.")
            driving.serve(ledger, self.binding, driving.current(ledger))
            driving.answer(ledger, self.binding, lives, cast(Command[Any], input))
        elif input is None:
            driving.go_on(ledger, self.binding, lives, start.max_steps)
        else:
            driving.start(ledger, self.binding, lives, start)

    def _made(self, ledger: Ledger, options: Options, stream: StreamId) -> Runner:
        run = ledger.state.run
        assert run is not None
        as_of = datetime.fromisoformat(run.started.as_of) if run.started.as_of else None
        return Runner(self.binding, ledger, options, as_of, identity=self._open()[2], reload=lambda: self._end(stream))

    def _driven(self, runner: Runner) -> Iterator[Chunk]:
        try:
            for _ in runner.steps():
                while runner.chunks:
                    yield runner.chunks.pop(0)
        finally:
            runner.close()

    def _result(self, runner: Runner) -> dict[str, Any]:
        run = runner.run
        thread_end.keep(self.store, runner.ledger.state, runner.ledger.chain, self.binding.kept_as)
        if run.ended and run.ended != "completed":
            raise_stopped(run, runner.errors)
        values = {k: fresh(v) for k, v in run.view().totals.items()}
        if run.questions:
            values["__interrupt__"] = tuple(Interrupt(fresh(q.value), i) for i, q in run.questions.items())
        return values

    def _thread(self, config: Config | None, thread: str | None) -> ThreadId:
        """The thread that is named; a new one where none is."""
        given = thread if thread is not None else (config or {}).get("configurable", {}).get("thread_id")
        return thread_id(given) if given is not None else ThreadId("run-" + new_id().hex())

    def _shown(self, config: Config | None, thread: ThreadId) -> Loaded:
        """What the thread shows: the stream that the config names, else its own, or the branch that it moved to."""
        named = (config or {}).get("configurable", {}).get("checkpoint_id")
        if named is not None:
            return self._end(snapshots.parse_checkpoint(named)[0])
        root = self._end(thread_stream(thread))
        return root if root.state.head is None else self._end(root.state.head)

    def _end(self, stream: StreamId) -> Loaded:
        """The stream as it is now."""
        return self.history.load_end(stream, self.binding.kept_as)

    def _where(self, config: Config | None, thread: str | None) -> tuple[ThreadId, StreamId]:
        name = self._thread(config, thread)
        return name, self._shown(config, name).state.stream

    # State

    def get_state(self, config: Config | None = None, *, thread_id: str | None = None, version: int | None = None) -> StateSnapshot:
        """The thread's state now, at a version, or at the one that a snapshot's config names. Conflicts that nothing has
        settled are listed in its metadata, not raised."""
        _, stream = self._where(config, thread_id)
        until = version if version is not None else _version(config)
        return snapshots.snapshot((self._end(stream) if until is None else self.history.load(stream, until)).state)

    async def aget_state(self, config: Config | None = None, **options: Any) -> StateSnapshot:
        return await asyncio.to_thread(self.get_state, config, **options)

    def get_state_history(self, config: Config | None = None, *, thread_id: str | None = None, limit: int | None = None) -> Iterator[StateSnapshot]:
        """A snapshot for every append that changed the state, newest first."""
        _, stream = self._where(config, thread_id)
        newest_first = list(snapshots.history(self.history, stream, _version(config)))[::-1]
        yield from newest_first[:limit]

    def update_state(self, config: Config | None, values: Any, as_node: str | None = None, *, thread_id: str | None = None,
                     actor: str = "") -> Config:
        """Edits the state where nothing runs; at an earlier version, in a branch that the thread shows from then on. Without
        `as_node` what waits stays; with it that node's successors are next. Returns the config to go on with."""
        name, stream = self._where(config, thread_id)
        version = _version(config)
        if version is not None and version != self.store.head(stream).version:
            stream = edits.fork(self.store, self.history, stream, version, "update_state", actor)

        def change(ledger: Ledger) -> None:
            edits.edit(ledger, self.binding, lambda w: self._open()[2].lives(w, stream), values, as_node, actor)
        ledger = self._changed(stream, change, actor)
        return snapshots.config_of(name, stream, ledger.state.version)

    def fork(self, config: Config | None = None, *, thread_id: str | None = None, version: int | None = None, why: str = "",
             actor: str = "") -> Config:
        """A branch at a version, which the thread shows from then on; what ran then waits again, under ids of its own."""
        name, stream = self._where(config, thread_id)
        at = version if version is not None else _version(config)
        branch = edits.fork(self.store, self.history, stream, at if at is not None else self.store.head(stream).version, why, actor)
        return snapshots.config_of(name, branch, 1)

    def cancel(self, config: Config | None = None, *, thread_id: str | None = None, reason: str = "", actor: str = "") -> RunId:
        """Ends the thread's run; what its tasks return later is refused and kept as a fact."""
        _, stream = self._where(config, thread_id)

        def change(ledger: Ledger) -> None:
            edits.cancel(ledger, reason, actor)
        run = self._changed(stream, change, actor).state.run
        if run is None:
            raise RunNotFound(f"run in stream {stream!r}")
        return run.id

    def adopt(self, config: Config | None = None, *, thread_id: str | None = None, why: str, actor: str = "") -> RunId:
        """Lets this version of the graph take over the thread's run, which another one started: an event, by whom and why. Raises
        GraphError where its shape is another one."""
        _, stream = self._where(config, thread_id)

        def change(ledger: Ledger) -> None:
            driving.serve(ledger, self.binding, driving.current(ledger), why)
        run = self._changed(stream, change, actor).state.run
        assert run is not None
        return run.id

    def answer(self, question: str, value: Any, *, actor: str = "", why: str = "", shown: str = "") -> ThreadId:
        """Records an answer without going on; returns the thread, to invoke(None) on."""
        row = next((q for q in self.store.questions() if q.question == question), None)
        if row is None:
            raise QuestionError(f"question {question} is not open in this log. `ledgergraph inbox` lists what is.")

        def change(ledger: Ledger) -> None:
            open_ = driving.current(ledger).questions.get(question)
            if open_ is None:
                raise QuestionError(driving.no_question(driving.current(ledger), question))
            if shown and shown != open_.asked.shown:
                raise QuestionError(f"question {question}: what was answered ({shown[:12]}) is not what is asked ({open_.asked.shown[:12]}).")
            ledger.offer(QuestionAnswered(question, open_.asked.revision, value, shown or open_.asked.shown, why, actor))
        return self._changed(row.stream, change, actor).state.thread

    def _changed(self, stream: StreamId, change: Any, actor: str) -> Ledger:
        """The stream after a change by its caller; decided again where somebody else wrote in between."""
        for _ in range(REBASE_MAX):
            ledger = Ledger(self.store, self._end(stream), actor=actor)
            change(ledger)
            try:
                ledger.commit()
                return ledger
            except WrongExpectedVersion:
                continue
        raise InvalidInput(f"stream {stream!r} is written to by others without a pause; try again.")


def _version(config: Config | None) -> int | None:
    named = (config or {}).get("configurable", {}).get("checkpoint_id")
    return None if named is None else snapshots.parse_checkpoint(named)[1]


def _url(log: str | Path | None) -> str:
    if log is None:
        return "memory://"
    return f"sqlite:///{log}" if isinstance(log, Path) else log
