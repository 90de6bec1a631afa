"""Who holds a task, and whether it still lives: here by its process, on another machine by the time that it renews."""
from __future__ import annotations

import os
import threading
from collections import Counter
from functools import cache
from pathlib import Path
from uuid import uuid4

from ledgergraph.eventstore.store import EventStore, Worker

LEASE_S = 30.0
"""Seconds that a worker on another machine is believed to live after it last renewed."""
BEAT_S = 10.0


@cache
def host() -> str:
    """This machine and its boot, so that a process number means something."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename


def born(pid: int) -> int:
    """When the process was started, as the system counts it; 0 where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return int(_exists(pid))
    return 0 if fields[0] == "Z" else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Identity:
    """This process as a worker of one store."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._driving: Counter[str] = Counter()
        self._pid = 0
        self._name = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def name(self) -> str:
        """Registered with the store on first use, renewed from then on by a thread of its own; a forked child is another one."""
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._name = f"w-{uuid4().hex[:12]}"
                    self._driving.clear()
                    self._beat()
                    threading.Thread(target=self._renew, args=(self._name,), name="ledgergraph-lease", daemon=True).start()
                    self._pid = os.getpid()
        return self._name

    def _beat(self) -> None:
        until = self.store.now() + int(LEASE_S * 1e6)
        self.store.beat(Worker(self._name, host(), os.getpid(), born(os.getpid()), until))

    def _renew(self, name: str) -> None:
        while not self._stop.wait(BEAT_S):
            if self._name != name:
                return
            try:
                self._beat()
            except Exception:
                # The store is away: the next beat tries again, and until then others may take over, as they should.
                continue

    def enter(self, stream: str) -> None:
        """A caller of this process drives a run of the stream."""
        with self._lock:
            self._driving[stream] += 1

    def leave(self, stream: str) -> None:
        with self._lock:
            self._driving[stream] -= 1
            if self._driving[stream] <= 0:
                del self._driving[stream]

    def close(self) -> None:
        self._stop.set()

    def lives(self, worker: str, stream: str) -> bool:
        """Whether that worker still holds its tasks of the stream."""
        if worker == self._name and self._pid == os.getpid():
            return self._driving[stream] > 0
        known = self.store.worker(worker)
        if known is None:
            return False
        if known.host == host():
            return born(known.pid) == known.born
        return known.until > self.store.now()
