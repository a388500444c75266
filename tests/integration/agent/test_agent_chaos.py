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


def test_nothing_is_swapped_lost_or_leaked(node, needs_root):
    chaos = Chaos(node, SEED, node.faults())
    print(f"seed {SEED}")
    chaos.run(FAULTS)
    chaos.report()
