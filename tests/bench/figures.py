"""Figures, their goals, and the file that holds them (build/bench.json).

A goal is a number (the value may be at most that) or a text:  OP TERM [+ NUMBER],  OP one of <= < >= >,  TERM one of
NUMBER, peer, NUMBER x peer.  "<= 14", "<= peer + 0.1", "<= 1.05 x peer". No goal (None): shown, not judged.
"""
import dataclasses
import json
import operator
import re
import statistics
import typing

OPERATORS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
GOAL = re.compile(rf"\s*(<=|<|>=|>)\s*(?:(?:({NUMBER})\s*x\s*)?(peer)|({NUMBER}))(?:\s*\+\s*({NUMBER}))?\s*$")
AREAS = ("rpc", "agent", "vgpu", "smi", "sched", "monitor", "dra", "kmod")


class BadGoal(ValueError):
    """A goal that does not follow the grammar."""


def limit_of(goal, peer_value):
    """(operator, number) of a goal; the number is None where it rests on a peer that was not measured."""
    if isinstance(goal, (int, float)) and not isinstance(goal, bool):
        return operator.le, float(goal)
    match = GOAL.match(goal) if isinstance(goal, str) else None
    if match is None:
        raise BadGoal(f"goal {goal!r}: neither a number nor OP TERM [+ NUMBER]")
    sign, factor, peer, number, plus = match.groups()
    if peer:
        base = None if peer_value is None else float(factor or 1) * peer_value
    else:
        base = float(number)
    return OPERATORS[sign], None if base is None else base + float(plus or 0)


@dataclasses.dataclass
class Figure:
    """One line of the bench: `peer` names what was measured beside it in the same run."""
    name: str
    unit: str
    value: typing.Optional[float] = None
    peer: typing.Optional[str] = None
    peer_value: typing.Optional[float] = None
    goal: typing.Union[str, float, None] = None
    why: typing.Optional[str] = None
    recorded: typing.Optional[dict] = None  # {who: value}: measured once elsewhere, shown and never judged

    def __post_init__(self):
        area, dot, what = self.name.partition(".")
        if area not in AREAS or not dot or not re.fullmatch(r"[a-z0-9_]+", what):
            raise ValueError(f"figure {self.name!r}: not area.what")
        if self.goal is not None:
            limit_of(self.goal, 0.0)

    def judged(self):
        """As bench.json has it: `met` computed from goal, null with `why` where it could not be."""
        met, why = None, self.why
        if self.value is None:
            why = why or "not measured"
        elif self.peer is not None and self.peer_value is None:
            why = why or f"its peer was not measured in the same run: {self.peer}"
        elif self.goal is None:
            why = why or "no goal: shown beside"
        else:
            compare, limit = limit_of(self.goal, self.peer_value)
            if limit is None:
                why = why or "the goal rests on a peer that was not measured"
            else:
                met = bool(compare(self.value, limit))
        out = {"name": self.name, "unit": self.unit, "value": rounded(self.value), "peer": self.peer,
               "peer_value": rounded(self.peer_value), "goal": self.goal, "met": met}
        if why and (met is None or self.why):
            out["why"] = why
        if self.recorded:
            out["recorded"] = self.recorded
        return out


def rounded(value):
    return None if value is None else float(f"{value:.5g}")


def interleaved(rounds, **measures):
    """Calls each measure once a round, in turns, so that a slow phase of the machine hits all; {name: [values]}."""
    out = {name: [] for name in measures}
    for i in range(rounds):
        order = list(measures.items())
        for name, measure in order[i % len(order):] + order[:i % len(order)]:
            out[name].append(measure())
    return out


def median(values):
    return statistics.median(values)


def percentile(values, share):
    """The nearest-rank percentile: percentile(v, 0.99)."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def notes(figure):
    """What stands behind a figure's line."""
    if figure.get("why"):
        yield figure["why"]
    if figure.get("recorded"):
        yield "recorded: " + ", ".join(f"{who} {value:g}" for who, value in figure["recorded"].items())


def table(figures):
    """The figures for people."""
    rows = [("figure", "value", "peer", "", "goal", "met")]
    for f in figures:
        rows.append((f["name"], "-" if f["value"] is None else f"{f['value']:g} {f['unit']}",
                     "" if f["peer_value"] is None else f"{f['peer_value']:g} {f['unit']}", f["peer"] or "",
                     "" if f["goal"] is None else str(f["goal"]),
                     {True: "yes", False: "NO", None: "-"}[f["met"]] + "".join(f"  ({n})" for n in notes(f))))
    widths = [max(len(r[i]) for r in rows) for i in range(5)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths + [0])).rstrip() for r in rows)


def write(path, commit, machine, figures):
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"commit": commit, "machine": machine, "figures": figures}, f, indent=1)
        f.write("\n")
