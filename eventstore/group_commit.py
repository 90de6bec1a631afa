"""Group commit: callers that come together share one transaction, and so one flush to the disk.

    caller --- nobody commits ----------> leader: takes the queue, commits it, wakes those whose appends it took
       \\                                     |
        `- somebody commits -> follower <----+-- the first of those that came meanwhile leads next

A caller that is alone commits on its own thread and hands nothing over. Where the next leader waits already, those that the last one
led are woken when the next one flushes: their own work then runs while the disk does its part, instead of in the way of the leader's.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from ledgergraph.eventstore.bell import Bell
from ledgergraph.eventstore.offer import check_append
from ledgergraph.eventstore.store import Append, Outcome
from ledgergraph.schemas.errors import StoreUnavailable

BATCH_MAX = 256
"""Appends that one transaction takes, unless one caller alone brings more."""
Flushing = Callable[[], None]
Commit = Callable[[list[Append], Flushing], list[Outcome]]
"""Commits all in one transaction and returns an outcome for each, or raises with nothing stored. Calls the second argument when all is
handed over and only the database's flush is waited for."""


class _Call:
    """One caller's appends, and what became of them."""

    __slots__ = ("appends", "asleep", "error", "led", "outcomes", "woken")

    def __init__(self, appends: list[Append]) -> None:
        self.appends = appends
        self.outcomes: list[Outcome] | None = None
        self.error: Exception | None = None
        self.led: list[_Call] = []
        """Where this caller leads: the calls that it took out of the queue, its own first."""
        self.asleep: list[_Call] = []
        """Where this caller leads: calls of the batch before, to be woken when it flushes."""
        self.woken = threading.Lock()
        self.woken.acquire()


class GroupCommit:
    """Runs `commit` for one caller at a time with everything that waits. Rings the bell after each commit."""

    def __init__(self, commit: Commit, bell: Bell, batch_max: int = BATCH_MAX) -> None:
        self._commit, self._bell, self._batch_max = commit, bell, batch_max
        self._mutex = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._leader: _Call | None = None

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        """An outcome for each append of the batch. Raises what `commit` raised; InvalidInput, with nothing stored, for an
        append that cannot be right."""
        if not batch:
            return []
        for append in batch:
            check_append(append)
        call = _Call(list(batch))
        try:
            self._take_part(call)
        finally:
            # Also where this thread was interrupted: those that it led wait for an answer, and somebody must lead next.
            self._leave(call)
        return _result(call)

    def _take_part(self, call: _Call) -> None:
        with self._mutex:
            self._waiting.append(call)
            if self._leader is None:
                self._leader = call
        if self._leader is not call:
            call.woken.acquire()
        if self._leader is call:
            self._take(call)
            self._settle(call.led, call)

    def _take(self, leader: _Call) -> None:
        """Takes the leader's call, which is the first in the queue, and those behind it that fit in a transaction."""
        with self._mutex:
            leader.led = [self._waiting.popleft()]
            size = len(leader.appends)
            while self._waiting and size + len(self._waiting[0].appends) <= self._batch_max:
                size += len(self._waiting[0].appends)
                leader.led.append(self._waiting.popleft())

    def _settle(self, calls: list[_Call], leader: _Call) -> None:
        """Gives every call its outcomes or its error. An append that the database cannot take must not fail those that
        came with it: where the error is not the database's silence, each call gets a transaction of its own."""
        try:
            self._commit_together(calls, leader)
        except StoreUnavailable as e:
            for call in calls:
                call.error = e
        except Exception as e:  # noqa: BLE001 whatever it is belongs to the callers, who raise it
            if len(calls) == 1:
                calls[0].error = e
                return
            for call in calls:
                self._settle([call], leader)

    def _commit_together(self, calls: list[_Call], leader: _Call) -> None:
        outcomes = self._commit([a for call in calls for a in call.appends], lambda: _wake(leader.asleep))
        at = 0
        for call in calls:
            call.outcomes = outcomes[at:at + len(call.appends)]
            at += len(call.appends)
        self._bell.ring()

    def _leave(self, call: _Call) -> None:
        led = call.led[1:]
        _wake(call.asleep)
        with self._mutex:
            if call in self._waiting:  # interrupted before it was taken
                self._waiting.remove(call)
            if self._leader is call:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.asleep, led = led, []
                    self._leader.woken.release()
        _wake(led)


def _wake(calls: list[_Call]) -> None:
    """Each once."""
    while calls:
        calls.pop().woken.release()


def _result(call: _Call) -> list[Outcome]:
    if call.outcomes is not None:
        return call.outcomes
    if call.error is None:
        raise StoreUnavailable("the thread that was committing this append was interrupted, so that its outcome is not known. "
                               "Append it again under the same key.")
    if isinstance(call.error, StoreUnavailable):
        raise StoreUnavailable(*call.error.args) from call.error.__cause__  # each thread its own traceback
    raise call.error
