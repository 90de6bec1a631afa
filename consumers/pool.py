"""Where nodes run beside the caller's thread: threads for sync ones, one event loop for async ones."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

Work = Callable[[], None]


class Threads:
    """Daemon threads that take work from one queue; a new one for each piece of work that finds none idle. (An executor of
    the standard library joins its threads at exit, so that a node which never returns would keep the process alive.)"""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def run(self, work: Work) -> None:
        self._queue.put(work)
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, name="ledgergraph-node", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._queue.get()()
            self._idle.release()


class Loop:
    """An event loop in a thread of its own, started when first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def submit(self, coroutine: Coroutine[Any, Any, Any], on: asyncio.AbstractEventLoop | None = None) -> Future[Any]:
        """Runs it on the given loop (an async caller's own), else on this one."""
        return asyncio.run_coroutine_threadsafe(coroutine, on if on is not None else self._started())

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="ledgergraph-loop", daemon=True).start()
            return self._loop


THREADS = Threads()
LOOP = Loop()
