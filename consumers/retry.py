"""Whether and when a failed attempt is tried again; tenacity computes it, a durable event says it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import tenacity

from ledgergraph.schemas.errors import EffectMismatch, GraphError, InvalidInput, StoreError
from ledgergraph.schemas.graph import RetrySpec

_PERMANENT = (ValueError, TypeError, ArithmeticError, ImportError, LookupError, NameError, SyntaxError, RuntimeError,
              ReferenceError, StopIteration, StopAsyncIteration, OSError)


def default_retry_on(error: Exception) -> bool:
    """Connection errors and whatever is no sign of a programming mistake, as LangGraph's default has it."""
    if isinstance(error, GraphError | InvalidInput | EffectMismatch | StoreError):
        return False
    return isinstance(error, ConnectionError) or not isinstance(error, _PERMANENT)


RetryOn = type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter; intervals in seconds."""

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: RetryOn = default_retry_on

    def spec(self) -> RetrySpec:
        return RetrySpec(self.max_attempts, self.initial_interval, self.backoff_factor, self.max_interval, self.jitter)

    def wait_s(self, attempt: int, error: BaseException) -> float | None:
        """Seconds until the attempt after number `attempt` (from 1), which raised `error`; None: no further one."""
        if not isinstance(error, Exception):
            return None
        retrying = self._retrying()
        state = tenacity.RetryCallState(retrying, None, (), {})
        state.attempt_number = attempt
        state.set_exception((type(error), error, error.__traceback__))
        if not retrying.retry(state) or retrying.stop(state):
            return None
        return float(retrying.wait(state))

    def _retrying(self) -> tenacity.Retrying:
        wait: Any = tenacity.wait_exponential(self.initial_interval, self.max_interval, self.backoff_factor)
        return tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.max_attempts), retry=tenacity.retry_if_exception(self._retries),
            wait=wait + tenacity.wait_random(0, min(1.0, self.initial_interval)) if self.jitter else wait)

    def _retries(self, error: BaseException) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(self.retry_on, type):
            return isinstance(error, self.retry_on)
        wanted: Any = self.retry_on
        return isinstance(error, tuple(cast(Any, wanted))) if isinstance(wanted, Sequence) else bool(wanted(error))
