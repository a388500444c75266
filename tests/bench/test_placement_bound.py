"""Clusters of a card or two, whose bound can be told by hand."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import placement_bound  # noqa: E402

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


@pytest.mark.parametrize("nodes, pods, want", [
    # Two cards have one of 600 each, and nothing fits beside it.
    ("n,9000,8192,2,T4\n", "p,1,1,1,600,\n", 60),
    # Asked for are 2 of each: they fit together.
    ("n,9000,8192,2,T4\n", "p,1,1,1,600,\nq,1,1,1,400,\n", 100),
    # In seventeenths of a card: 20 shares of 700, 10 of 300. Ten cards' parts have both, seven have a share of 700 alone.
    ("n,9000,8192,1,T4\n", "p,1,1,1,700,\nq,1,1,1,700,\nr,1,1,1,300,\n", 100 * (10 + 7 * 0.7) / 17),
    # CPU for one of the two.
    ("n,1000,8192,2,T4\n", "p,1000,1,1,1000,\n", 50),
    # Memory for three quarters of them.
    ("n,9000,6144,2,T4\n", "p,1,4096,1,1000,\n", 75),
    # Half of what is asked for wants another model.
    ("n,9000,8192,2,T4\n", "p,1,1,1,1000,T4\nq,1,1,1,1000,P100\n", 50),
    # Four cards are on no node.
    ("n,9000,8192,2,T4\nm,9000,8192,2,T4\n", "p,1,1,4,1000,\nq,1,1,2,1000,\n", 100 / 3),
])
def test_what_can_be_allocated_at_most(tmp_path, nodes, pods, want):
    (tmp_path / "n").write_text(NODES + nodes)
    (tmp_path / "p").write_text(PODS + pods)
    assert placement_bound.percent(tmp_path / "n", tmp_path / "p") == pytest.approx(want, abs=0.01)
