"""The list of differences says of each by which defect of HAMi's, or by which sentence of ours."""
import re

import yaml

from golden_peer import GOLDEN

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
