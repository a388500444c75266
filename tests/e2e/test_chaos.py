"""Random faults on the real kubelet (tests/chaos). CHAOS_FAULTS and CHAOS_SEED change the number and the dice."""
import os
import shutil
import tempfile
import time

import pytest

from chaos.chaos import Chaos
from chaos.real import ChaosRealNode
from node.hami_real import serve_hami

FAULTS = int(os.environ.get("CHAOS_FAULTS", "40"))
SEED = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))


@pytest.fixture
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-dp-")
    it = ChaosRealNode(folder, card_file="t4x2.yaml")
    try:
        serve_hami(it, 2)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def test_nothing_is_swapped_lost_or_leaked(node):
    chaos = Chaos(node, SEED, node.faults(), pods=8)
    print(f"seed {SEED}")
    chaos.run(FAULTS, a_round=10)
    chaos.report()
