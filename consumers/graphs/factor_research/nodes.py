"""The nodes of the factor-research graph. Each is a function of the state; what reaches outside goes through the context."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, cast

import orjson

from ledgergraph.consumers.context import NodeContext
from ledgergraph.consumers.graphs.factor_research import factors, portfolio, prices, risk, screen, validation
from ledgergraph.consumers.graphs.factor_research.factors import ROUNDS, Panel
from ledgergraph.consumers.graphs.factor_research.validation import Verdict
from ledgergraph.schemas.errors import InvalidInput
from ledgergraph.schemas.reducers import merge

WIDEN_MAX = 2
SURVIVORS_MIN = 3
FACTORS = ("momentum", "low_volatility", "drawdown", "short_reversal", "long_reversal", "momentum_over_volatility")
CAP = Decimal("0.15")
"""Where the input gives none."""
VOLATILITY_MAX = Decimal("0.25")
"""Yearly: above it the proposal is to hold back."""


class Research(TypedDict):
    """The state of a run."""

    prices: str
    """A price file; empty: the packaged one."""
    out: str
    """The folder that the signal is published in."""
    cap: Decimal
    """The largest weight of a company."""
    frame: bytes
    """The prices known by as_of, as parquet."""
    data: dict[str, Any]
    """What was read: see prices.Facts."""
    round: int
    """How often the search was widened."""
    panels: Annotated[dict[str, Panel], merge]
    """By factor and windows."""
    verdicts: list[Verdict]
    survivors: list[str]
    thin: bool
    """It goes on with fewer than three factors."""
    weights: dict[str, Decimal]
    risk: dict[str, Any]
    decision: dict[str, Any]
    narrative: str
    answer: dict[str, Any]
    published: dict[str, Any]
    status: Literal["open", "published", "rejected", "no signal"]


NOTHING_YET: dict[str, Any] = {
    "verdicts": [], "survivors": [], "thin": False, "weights": {}, "risk": {}, "decision": {}, "narrative": "", "answer": {},
    "published": {}, "status": "open"}
"""A run begins with these: nothing of an earlier run of its thread, which may have known more, shows through."""


def plan(state: Research, ctx: NodeContext) -> dict[str, Any]:
    """Reads the prices that were known by as_of."""
    as_of = ctx.as_of
    if as_of is None:
        raise InvalidInput("the run has no as_of. Give one, for example as_of='2010-06-30': it decides which prices are known.")
    portfolio.check_cap(state.get("cap", CAP))
    path = state.get("prices", "")

    def read() -> dict[str, Any]:
        facts, frame = prices.read(path, as_of)
        return {"facts": asdict(facts), "frame": frame}
    got = ctx.effect("read prices", read, request={"prices": path, "as_of": as_of.isoformat()}, on_unknown="retry")
    return {"frame": got["frame"], "data": got["facts"], "round": 0, **NOTHING_YET}


def label(factor: str, round_: int) -> str:
    """A factor with its windows: the name of its panel."""
    windows: dict[str, Any] = dict(ROUNDS[round_])
    parts = ("momentum", "low_volatility") if factor == "momentum_over_volatility" else (factor,)
    used: list[int | list[int]] = [windows[p] for p in parts]
    shown = ", ".join("-".join(map(str, w)) if isinstance(w, list) else str(w) for w in used)
    return f"{factor} ({shown})"


def branch(name: str, compute: Callable[..., Panel]) -> Callable[[Research], dict[str, Any]]:
    """A node that computes one factor's panel with the windows of the round."""
    def node(state: Research) -> dict[str, Any]:
        panel = compute(prices.table(state["frame"]), ROUNDS[state["round"]])
        return {"panels": {label(name, state["round"]): panel}}
    node.__name__ = name
    return node


momentum = branch("momentum", factors.momentum)
low_volatility = branch("low_volatility", factors.low_volatility)
drawdown = branch("drawdown", factors.drawdown)
short_reversal = branch("short_reversal", factors.short_reversal)
long_reversal = branch("long_reversal", factors.long_reversal)


def momentum_over_volatility(state: Research) -> dict[str, Any]:
    """Out of the panels of two other branches."""
    panels, n = state["panels"], state["round"]
    panel = factors.momentum_over_volatility(panels[label("momentum", n)], panels[label("low_volatility", n)])
    return {"panels": {label("momentum_over_volatility", n): panel}}


def validate(state: Research) -> dict[str, Any]:
    """Judges every panel of this run so far: what passed in an earlier round still counts. The panels of an earlier run in the
    thread do not: they may hold what was known later."""
    ahead = validation.forward_returns(prices.table(state["frame"]))
    mine = {label(f, n) for f in FACTORS for n in range(state["round"] + 1)}
    verdicts = [validation.judge(name, panel, ahead) for name, panel in sorted(state["panels"].items()) if name in mine]
    return {"verdicts": verdicts, "survivors": [v["factor"] for v in verdicts if v["passes"]]}


def after_validation(state: Research) -> Literal["no_signal", "widen", "construct"]:
    """No survivor: no signal. Fewer than three: widen, twice at most, then go on with what there is."""
    if not state["survivors"]:
        return "no_signal"
    if len(state["survivors"]) < SURVIVORS_MIN and state["round"] < WIDEN_MAX:
        return "widen"
    return "construct"


def widen(state: Research) -> dict[str, Any]:
    """Other windows, back to the factors: more trials, which the report counts."""
    return {"round": state["round"] + 1}


def no_signal(state: Research) -> dict[str, Any]:
    return {"status": "no signal", "narrative": screen.no_signal(state["data"], state["verdicts"])}


def construct(state: Research) -> dict[str, Any]:
    """Raises CapCannotBeMet and CannotConstruct."""
    table = prices.table(state["frame"])
    score, known = portfolio.scores([state["panels"][f] for f in state["survivors"]]), risk.complete(table)
    held = portfolio.best({t: x for t, x in score.items() if t in known})
    weights = portfolio.weights(risk.volatility(table, held), state.get("cap", CAP))
    return {"weights": weights, "thin": len(state["survivors"]) < SURVIVORS_MIN}


def measure(state: Research) -> dict[str, Any]:
    return {"risk": dict(risk.measure(prices.table(state["frame"]), state["weights"]))}


def decide(state: Research) -> dict[str, Any]:
    """A rule, no model: what is proposed, and why."""
    significant = [v["factor"] for v in state["verdicts"] if v["passes"] and validation.is_significant(v)]
    reasons: list[str] = []
    if not significant:
        reasons.append("no factor is significant")
    if state["thin"]:
        reasons.append(f"fewer than {SURVIVORS_MIN} factors passed")
    calm = state["risk"]["volatility"] <= VOLATILITY_MAX
    if not calm:
        reasons.append(f"its volatility is above {VOLATILITY_MAX}")
    action = "hold back" if not calm else "publish as a paper signal, without capital" if reasons else "publish"
    return {"decision": {"action": action, "reasons": reasons, "significant": significant}}


def narrate(state: Research) -> dict[str, Any]:
    return {"narrative": screen.narrative(dict(state))}


def approve(state: Research, ctx: NodeContext) -> dict[str, Any]:
    """Asks a person, with all that the decision needs on one screen."""
    shown = screen.approval(dict(state))
    question: dict[str, Any] = {
        "question": "Publish this signal?", "screen": shown, "yes": f"writes the signal to {state.get('out', '.')}",
        "no": "ends the run as rejected; nothing is written", "answer": {"approved": "true or false", "why": "text"}}
    answer = ctx.interrupt(question)
    while problem := _problem(answer):
        answer = ctx.interrupt({**question, "problem": problem})
    return {"answer": {**answer, "by": ctx.answered_by or str(answer.get("by", ""))}}


def _problem(answer: Any) -> str:
    given = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
    if not isinstance(given.get("approved"), bool):
        return "The answer did not say whether it is approved: {\"approved\": true, \"why\": \"...\"}."
    return "" if str(given.get("why", "")).strip() else "The answer gave no reason: add \"why\"."


def after_approval(state: Research) -> Literal["publish", "reject"]:
    return "publish" if state["answer"]["approved"] else "reject"


def reject(state: Research) -> dict[str, Any]:
    return {"status": "rejected"}


def publish(state: Research, ctx: NodeContext) -> dict[str, Any]:
    """Writes the signal. The file's name holds the effect's key: writing it again is the same file."""
    signal, folder = screen.signal(dict(state)), Path(state.get("out", "."))

    def put(key: str) -> dict[str, Any]:
        return write(folder, signal, key)
    written = ctx.effect("publish signal", put, request=signal, on_unknown="retry")
    return {"published": written, "status": "published"}


def write(folder: Path, signal: dict[str, Any], key: str) -> dict[str, Any]:
    """Whole or not at all, also where the process dies in between; what an earlier attempt left half-written goes."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"signal-{signal['last']}-{key[:12]}.json"
    data = orjson.dumps(signal, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    part = target.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    part.replace(target)
    for left in folder.glob(f"{target.stem}.*.part"):
        left.unlink(missing_ok=True)
    _keep_names(folder)
    return {"path": str(target), "bytes": len(data), "key": key}


def _keep_names(folder: Path) -> None:
    """A file's new name outlives a power cut only where its folder was flushed too; Windows has no such call."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
