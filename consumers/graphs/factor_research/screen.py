"""What people read: the approval screen, the report, and the words about what the numbers do not show."""
from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ledgergraph.consumers.graphs.factor_research.validation import MONTHS_MIN, T_MIN, Verdict, is_significant

State = Mapping[str, Any]
COLUMNS = 80
FACTORS_SHOWN, ROWS_SHOWN, WARNING_SHOWN, TICKER_SHOWN = 7, 4, 3, 5
"""Of the screen: factors that passed, rows of weights, lines of a warning, letters of a company's name."""
HINDSIGHT = "These companies are survivors of 2022 that were picked with hindsight: who failed on the way is not among them."
ADJUSTED = "Prices were adjusted later for splits and dividends: nobody saw these numbers on the day."


UNKNOWN = "Whether companies were picked with hindsight, and whether prices were adjusted later, this price file does not say."


def warnings(verdicts: Sequence[Verdict], data: Mapping[str, Any]) -> list[str]:
    """What must be said beside every number."""
    return [_significance(verdicts), *about(data)]


def _significance(verdicts: Sequence[Verdict]) -> str:
    """Which trials pass a usual test, in the direction that was asked or against it."""
    tried, far = len(verdicts), [v for v in verdicts if is_significant(v)]
    good, bad = ([v["factor"] for v in far if v["passes"] is passes] for passes in (True, False))
    if good:
        return f"Significant at 5 % as single trials: {', '.join(good)}; among {tried} trials chance alone may do that."
    if bad:
        return (f"No factor is significant in its direction: none of the {tried} that were tried passes a 5 % test there, "
                f"and the gate asks for less. Against it: {', '.join(bad)}.")
    return f"No factor is significant: none of the {tried} that were tried passes a 5 % test, and the gate asks for less."


def about(data: Mapping[str, Any]) -> list[str]:
    """What is known against the prices."""
    return [HINDSIGHT, ADJUSTED] if data["source"] == "packaged" else [UNKNOWN]


def row(v: Verdict) -> str:
    mean = "     -" if v["mean"] is None else f"{v['mean']:+.3f}"
    t = "    -" if v["t"] is None else f"{v['t']:+.2f}"
    return f"{v['factor']:<38} {mean} {t}  {v['months']:>3}  {v['why']}"


HEAD = f"{'factor (windows in sessions)':<38} {'mean':>6} {'t':>5} months"


def approval(s: State) -> str:
    """All that the decision needs, on one screen: 80 columns, at most 30 lines, whatever the prices; the report has the rest."""
    passed = [v for v in s["verdicts"] if v["passes"]]
    lines = [f"Prices known by {s['data']['last']}: {s['data']['companies']} companies, {s['data']['sessions']} sessions, "
             f"{s['data']['missing']} missing",
             f"Gate: mean rank IC above 0 and t of at least {T_MIN:g}, {MONTHS_MIN} months at least",
             f"{len(passed)} of {len(s['verdicts'])} trials passed" + (", fewer than three: THIN" if s["thin"] else "")
             + f"; the search was widened {s['round']} times", "",
             HEAD, *_bounded([row(v)[:COLUMNS] for v in passed], FACTORS_SHOWN), "", *_weights(s["weights"]),
             f"risk     volatility {s['risk']['volatility']:.4f} a year, worst fall {s['risk']['worst_fall']:.3f}, "
             f"worst day {s['risk']['worst_day']:.3f}", f"proposal {s['decision']['action']}", "",
             "Against it:", *(line for w in warnings(s["verdicts"], s["data"]) for line in _folded(w))]
    return "\n".join(lines)


def _bounded(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most - 1], f"... and {len(lines) - most + 1} more"]


def _weights(weights: Mapping[str, Any]) -> list[str]:
    """The largest first, in rows of up to five; the last row says what it leaves out."""
    parts = [f"{_cut(t)} {w:.4f}" for t, w in sorted(weights.items(), key=lambda x: (-x[1], x[0]))]
    rows = [parts[i:i + 5] for i in range(0, len(parts), 5)]
    if len(rows) > ROWS_SHOWN:
        kept = 5 * (ROWS_SHOWN - 1)
        rows = [*rows[:ROWS_SHOWN - 1], [f"... and {len(parts) - kept} more, none above {parts[kept].split()[-1]}"]]
    return [head + "  ".join(r) for head, r in zip(["weights  ", *[" " * 9] * len(rows)], rows, strict=False)]


def _cut(name: str) -> str:
    """A company's name, short enough for five in a row."""
    one = " ".join(name.split())
    return one if len(one) <= TICKER_SHOWN else one[:TICKER_SHOWN - 1] + "…"


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS - 2, initial_indent="- ", subsequent_indent="  ", max_lines=WARNING_SHOWN,
                         placeholder=" ...")


def narrative(s: State) -> str:
    """The decision in words, from a template: every number in it stands in the state."""
    names, reasons = ", ".join(s["survivors"]), " and ".join(s["decision"]["reasons"])
    return (f"{len(s['survivors'])} of {len(s['verdicts'])} factor trials passed the gate ({names}). The portfolio holds "
            f"{len(s['weights'])} companies, none above {max(s['weights'].values())}, with a volatility of "
            f"{s['risk']['volatility']} a year. Proposal: {s['decision']['action']}" + (f", because {reasons}" if reasons else "")
            + ". " + " ".join(warnings(s["verdicts"], s["data"])))


def no_signal(data: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    return (f"No factor passed the gate on {data['sessions']} sessions up to {data['last']} ({len(verdicts)} tried): "
            "there is no signal. " + " ".join(about(data)))


def signal(s: State) -> dict[str, Any]:
    """What is published: texts and numbers that any reader of JSON knows."""
    return {"graph": "factor-research", "last": str(s["data"]["last"]), "weights": {t: str(w) for t, w in s["weights"].items()},
            "factors": list(s["survivors"]), "thin": s["thin"], "action": s["decision"]["action"],
            "volatility": str(s["risk"]["volatility"]), "approved_by": str(s["answer"].get("by", "")),
            "why": str(s["answer"]["why"]), "warnings": warnings(s["verdicts"], s["data"])}


def report(s: State) -> str:
    """The whole result, for a person who was not there."""
    data = s["data"]
    lines = [f"Factor research, prices known by {data['last']}", "",
             f"Data      {data['source']}, sha256 {data['digest'][:16]}…; {data['companies']} companies, {data['sessions']} "
             f"sessions from {data['first']}, {data['missing']} prices missing",
             f"Rounds    {s['round'] + 1}; {len(s['verdicts'])} trials", "",
             HEAD, *(row(v) for v in s["verdicts"])]
    if s.get("weights"):
        shares = s["risk"]["contributions"]
        lines += ["", f"{'company':<10}{'weight':>9}{'risk':>11}",
                  *(f"{t:<10}{w:>9}{shares[t]:>11}" for t, w in s["weights"].items()),
                  f"{'total':<10}{sum(s['weights'].values()):>9}{s['risk']['volatility']:>11}"]
    lines += ["", *textwrap.wrap(s["narrative"], COLUMNS), "", f"Status    {s['status']}"]
    if s.get("answer"):
        said = "approved" if s["answer"]["approved"] else "rejected"
        lines.append(f"Answer    {said} by {s['answer'].get('by', 'unknown')}: {s['answer']['why']}")
    if s.get("published"):
        lines.append(f"Signal    {s['published']['path']}")
    return "\n".join(lines)
