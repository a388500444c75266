"""The list of differences says of each by which defect of HAMi's, or by which sentence of ours."""
import re

import yaml

from golden_cluster import name_of
from golden_peer import GOLDEN, recording
from test_golden_filter import is_core

NUMBERS = re.compile(r"(S\d+|P11\.\d+)(, (S\d+|P11\.\d+))*: \S")
AGENTS = ("node", "allocate", "late")


def test_each_has_a_number_or_a_sentence_of_ours():
    bad = []
    for e in yaml.safe_load((GOLDEN / "differences.yaml").read_text()):
        kind, _, rest = e["why"].partition(": ")
        if NUMBERS.match(e["why"]) or (kind == "own" and e["action"] in AGENTS):
            continue
        page, _, sentence = rest.partition(": ")
        path = GOLDEN.parents[1] / page
        if kind != "own" or not path.is_file() or not sentence or sentence not in path.read_text():
            bad.append(f"{e['action']} {e['line']}: {e['why']}")
    assert not bad


def test_the_scheduler_s_are_listed_value_by_value():
    for e in yaml.safe_load((GOLDEN / "differences.yaml").read_text()):
        if e["action"] in ("filter", "simulate", "bind", "http", "metrics"):
            assert e["values"] and not {"path", "golden", "ours", "times"} & e.keys(), e["line"]


def test_the_pages_tell_how_many_core_answers_differ():
    listed = {e["line"] for e in yaml.safe_load((GOLDEN / "differences.yaml").read_text()) if e["action"] == "filter"}
    core = [line for line in recording("filter.jsonl.gz") if line["action"] in ("filter", "filter-again") and is_core(line)]
    differ = sum(name_of(line) in listed for line in core)
    assert f" {differ} core lines differ; " in (GOLDEN / "README.md").read_text()
    assert f"; the {differ} of {len(core):,} core answers that differ " in (GOLDEN.parents[1] / "docs/placement.md").read_text()
