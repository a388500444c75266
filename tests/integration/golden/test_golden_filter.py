"""Each pod that HAMi's scheduler was asked for: ours chooses the same node and cards, or refuses for the same reasons,
or the difference is listed. What HAMi answered is what the later lines of a cluster build on, whatever ours said."""
import collections
import subprocess

import pytest
import yaml

from golden_cluster import NODE, Cluster, unlisted
from golden_peer import GOLDEN, recording

FILTER_LINES = 2722
CORE = 1783  # lines without a tag but S24, which is no other answer: all of them are asked
MOST = 60    # of them may differ


def is_core(line):
    return not line.get("after") and set(line.get("defects", [])) <= {"S24"}


def is_compared(line):
    """Gaps in device strings are all that S1 changes, where it has no later effect."""
    return not line.get("after") and set(line.get("defects", [])) <= {"S1", "S24"}


class Empty(Cluster):
    """Nodes that the program does not know, where nothing runs: HAMi's simulation begins with that. The pods count in their
    namespace's quota all the same, so they run on a node of their own."""

    def put_node(self, name):
        pass

    def hold(self, pod):
        marks = pod["metadata"]["annotations"]
        super().hold({**pod, "metadata": {**pod["metadata"], "annotations": {**marks, NODE: marks.get(NODE) and "elsewhere"}}})

    def filter(self, line):
        self.go_on(line["pod"], line["answer"], {})

    filter_again = filter


def replay(build, kind, asked):
    """[(line, HAMi's answer, ours)] of the lines with the actions asked."""
    out, configs, cluster = [], {}, None
    with subprocess.Popen([str(build / "tests/golden-filter-answers")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        for line in recording("filter.jsonl.gz"):
            action = line["action"]
            if action == "config":
                configs[line["config"]] = line
            elif action == "cluster":
                cluster = kind(program, configs[line["config"]], line)
            elif action in asked:
                out.append((line, *getattr(cluster, action.replace("-", "_"))(line)))
            elif action != "simulate":
                getattr(cluster, action.replace("-", "_"))(line)
        program.stdin.close()
        assert program.wait(timeout=60) == 0
    return out


@pytest.fixture(scope="module")
def replayed(build):
    return replay(build, Cluster, ("filter", "filter-again"))


def test_the_same_answers_or_listed_ones(replayed):
    assert not unlisted("filter", [r for r in replayed if is_compared(r[0])])


def test_few_answers_differ(replayed):
    core = [(theirs, ours) for line, theirs, ours in replayed if is_core(line)]
    assert len(core) == CORE
    assert sum(theirs != ours for theirs, ours in core) <= MOST


def test_lines_of_defects(replayed):
    """Where HAMi's answer shows a defect, or what one has left: how many are the same all the same, by defects."""
    asked, same = collections.Counter(), collections.Counter()
    for line, theirs, ours in replayed:
        if not is_compared(line):
            tags = " ".join(sorted({*line.get("defects", []), *line.get("after", [])} - {"S24"}, key=lambda s: int(s[1:])))
            asked[tags] += 1
            same[tags] += theirs == ours
    assert len(replayed) == FILTER_LINES
    listed = yaml.safe_load((GOLDEN / "defects.yaml").read_text())
    assert {tags: f"{same[tags]} of {asked[tags]}" for tags in asked} == listed


def test_simulations(build):
    """The autoscaler's question: the same nodes fit, each refused one for the same reasons."""
    pairs = replay(build, Empty, ("simulate",))
    assert len(pairs) == 93 and sum(bool(theirs["fitting"]) for _, theirs, _ in pairs) == 63
    assert not unlisted("simulate", pairs)
