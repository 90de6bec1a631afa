"""How readers in one process learn that something was appended, without asking again and again."""
from __future__ import annotations

import threading


class Bell:
    """Counts commits. A reader notes the count, reads, and where it found nothing waits for the count to move on: what is
    committed between its read and its wait has moved the count, so that no wake-up is lost."""

    __slots__ = ("_moved", "rings")

    def __init__(self) -> None:
        self.rings = 0
        self._moved = threading.Condition(threading.Lock())

    def ring(self) -> None:
        with self._moved:
            self.rings += 1
            self._moved.notify_all()

    def wait(self, rings: int, timeout_s: float) -> int:
        """The count as soon as it differs from `rings`, or after `timeout_s` seconds."""
        with self._moved:
            self._moved.wait_for(lambda: self.rings != rings, timeout_s)
            return self.rings
