"""The grammar of goals, and what is met, missed or null."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import figures  # noqa: E402


@pytest.mark.parametrize("goal, value, peer, met", [
    (14, 14, None, True),
    (14, 14.01, None, False),
    ("<= 14", 13, None, True),
    ("< 14", 14, None, False),
    (">= 95.2", 95.2, None, True),
    (">= 95.2", 95.1, None, False),
    ("> 1", 1, None, False),
    ("<= peer", 3, 3, True),
    ("<= peer + 0.1", 0.31, 0.2, False),
    ("<= peer + 0.1", 0.29, 0.2, True),
    ("<= 1.05 x peer", 105, 100, True),
    ("<= 1.05 x peer", 106, 100, False),
    ("<=1.5x peer+2", 17, 10, True),
    (">= 2 x peer", 19, 10, False),
])
def test_met_is_computed_from_the_goal(goal, value, peer, met):
    figure = figures.Figure("agent.x", "ms", value, "a peer" if peer is not None else None, peer, goal)
    assert figure.judged()["met"] is met
    assert "why" not in figure.judged()


@pytest.mark.parametrize("goal", ["", "14", "<= ", "=< 3", "<= pear", "<= 2 * peer", "<= peer - 1", "<= peer + x", True, [], "<= 1.2.3"])
def test_a_goal_outside_the_grammar_is_refused(goal):
    with pytest.raises(figures.BadGoal):
        figures.Figure("agent.x", "ms", 1, "p", 1, goal)


@pytest.mark.parametrize("name", ["x", "agent", "agent.", "agent.P50", "nobody.x", "agent.a b"])
def test_a_name_is_area_and_what(name):
    with pytest.raises(ValueError):
        figures.Figure(name, "ms")


def test_what_was_not_measured_is_null_with_why():
    assert figures.Figure("agent.x", "ms", None, goal=3).judged()["why"] == "not measured"
    without_peer = figures.Figure("agent.x", "ms", 1, "grpc-go", None, "<= 3").judged()
    assert without_peer["met"] is None and "grpc-go" in without_peer["why"]
    shown = figures.Figure("rpc.x", "ms", 1, "p", 2).judged()
    assert shown["met"] is None and shown["why"].startswith("no goal")
    assert figures.Figure("agent.x", "ms", None, goal=3, why="no cluster here").judged()["why"] == "no cluster here"


def test_what_was_recorded_is_shown_and_never_judged():
    figure = figures.Figure("agent.rss", "MiB", 15, goal=14, recorded={"another": 40.7}).judged()
    assert figure["met"] is False and figure["recorded"] == {"another": 40.7}
    assert figures.table([figure]).endswith("NO  (recorded: another 40.7)")
    assert "recorded" not in figures.Figure("agent.rss", "MiB", 15).judged()


def test_measures_take_turns():
    calls = []
    got = figures.interleaved(4, a=lambda: calls.append("a") or 1, b=lambda: calls.append("b") or 2)
    assert got == {"a": [1] * 4, "b": [2] * 4}
    assert "".join(calls) == "abbaabba"


def test_percentiles():
    assert figures.percentile(range(100), 0.99) == 99
    assert figures.percentile([5], 0.5) == 5
    assert figures.percentile(range(101), 0.5) == 50
