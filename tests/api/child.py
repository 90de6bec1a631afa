"""A process that is killed: three nodes, the second with an effect that writes its key to a side file.

    child.py URL SIDE WHERE ON_UNKNOWN start|resume|answer

WHERE it tells that it is there and stays: `call` (within the effect's call), `node` (after it), `-` nowhere.
"""
from __future__ import annotations

import sys
import threading
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from ledgergraph.consumers import START, Command, StateGraph

URL, SIDE, WHERE, ON_UNKNOWN, WHAT = sys.argv[1:]


class State(TypedDict):
    log: Annotated[list[str], add]
    read: Annotated[list[Any], add]


def stay(where: str) -> None:
    if where == WHERE:
        print("HERE", flush=True)
        threading.Event().wait()


def effect(s: State, ctx: Any) -> dict[str, Any]:
    read = [ctx.now(), ctx.random(), ctx.uuid()]

    def call(key: str) -> int:
        with Path(SIDE).open("a") as f:
            f.write(f"{key} {read[2]}\n")
        stay("call")
        return 1
    got = ctx.effect("buy", call, request={"n": 1}, on_unknown=ON_UNKNOWN)
    stay("node")
    return {"log": [f"e{got}"], "read": read}


builder = StateGraph(State)
builder.add_node("a", lambda s: {"log": ["a"]}).add_node("e", effect).add_node("z", lambda s: {"log": ["z"]})
builder.add_edge(START, "a").add_edge("a", "e").add_edge("e", "z")

if __name__ == "__main__":
    app = builder.compile(URL)
    given = {"start": {}, "resume": None, "answer": Command(resume={"happened": True, "result": 7})}[WHAT]
    out = app.invoke(given, thread_id="t")
    print([q.value["question"] for q in out.get("__interrupt__", ())] or out["log"], flush=True)
    app.close()
