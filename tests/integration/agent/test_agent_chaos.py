"""Random faults against the stand-in kubelet (tests/chaos; make soak runs more). CHAOS_FAULTS and CHAOS_SEED change the number and the dice."""
import os
import shutil
import tempfile
import time

import pytest

from chaos.chaos import Chaos
from chaos.simulated import ChaosNode
from node.base import BUILD, PLAIN
from node.hami import serve_hami

# With sanitizers everything is several times slower.
FAULTS = int(os.environ.get("CHAOS_FAULTS", "1000" if PLAIN == BUILD else "150"))
SEED = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))


@pytest.fixture
def node():
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = ChaosNode(folder, card_file="t4x2.yaml")
    try:
        serve_hami(it)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


NO_DEVICES = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"
BROKE = "Pod was rejected: Allocate failed due to rpc error: code = Unavailable desc = connection lost, which is unexpected"


@pytest.mark.parametrize("message, admitted, asking, faults, excused", [
    (BROKE, False, 1, {"agent killed"}, True),
    (BROKE, False, 1, {"kubelet restarted", "NVML error", "API server away"}, False),
    (BROKE, True, 1, {"agent killed"}, False),
    ("code = Internal desc = no", False, 1, {"agent killed", "kubelet restarted", "NVML error"}, False),
    (NO_DEVICES, False, 2, {"NVML error"}, True),
    (NO_DEVICES, False, 1, {"NVML error", "agent killed"}, False),
    (NO_DEVICES, True, 1, {"kubelet restarted", "agent killed"}, True),
    (NO_DEVICES, True, 1, {"kubelet restarted"}, False),
    (NO_DEVICES, True, 2, {"agent killed", "NVML error"}, False),
])
def test_a_rejection_is_excused_by_the_fault_that_can_cause_it_only(message, admitted, asking, faults, excused):
    node = object.__new__(ChaosNode)
    node.pod = lambda _: {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message, "admitted": admitted,
                          "containers": [{"asks": True}] * asking + [{"asks": False}]}
    assert node.was_cut_off("p", faults) == excused


def test_nothing_is_swapped_lost_or_leaked(node, needs_root):
    chaos = Chaos(node, SEED, node.faults())
    print(f"seed {SEED}")
    chaos.run(FAULTS)
    chaos.report()
