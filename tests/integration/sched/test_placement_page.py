"""make placement makes docs/placement.md: every line of its table, every picture. On the small sample instead of the trace."""
import pathlib
import re
import shutil
import sys

REPO = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPO / "tests/bench"))

import bench_placement  # noqa: E402

SAMPLE = REPO / "deploy/examples/simulate"


def names(text):
    table = re.search(r"(?m)^\| \| default \|.*\n\|.*\n((?:\|.*\n)+)", text)[1]
    return [row.split("|")[1].strip() for row in table.splitlines()]


def test_the_page_is_what_the_command_writes(tmp_path, monkeypatch, capsys, build):
    page = bench_placement.PAGE.read_text(encoding="utf-8")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "placement.md").write_text(page)
    shutil.copy(SAMPLE / "nodes.csv", tmp_path / "openb_node_list_gpu_node.csv")
    for workload in bench_placement.PAPER:
        shutil.copy(SAMPLE / "pods.csv", tmp_path / f"openb_pod_list_{workload}.csv")
    monkeypatch.setenv("HAMI_TRACES", str(tmp_path))
    monkeypatch.setenv("HAMI_BUILD", str(build))
    monkeypatch.setattr(bench_placement, "PAGE", tmp_path / "placement.md")
    monkeypatch.setattr(sys, "argv", ["bench_placement.py", "--write"])
    bench_placement.main()
    written = (tmp_path / "placement.md").read_text()
    assert names(written) == names(page) and written != page
    assert names(capsys.readouterr().out) == names(page)
    shown = re.findall(r"\(pictures/(placement_\w+\.svg)\)", page)
    assert sorted(shown) == sorted(p.name for p in (tmp_path / "pictures").iterdir())
