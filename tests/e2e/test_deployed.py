"""Every shared scenario against the agent in its pod, with as few rights as it can do with."""
import os
import shutil
import tempfile

import pytest

from node.base import wait_until
from node.deployed import DeployedNode
from node.fixtures import clean  # noqa: F401  (pytest runs it)
from node.scenarios import *  # noqa: F401,F403  (pytest collects the shared tests)
from test_cluster import test_a_non_root_container_is_held_too, test_exec_into_the_container_is_held_by_the_same_slice  # noqa: F401


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-dp-")
    it = DeployedNode(folder, "slices-least-privilege.yaml", card_file="t4x2.yaml", slots=4)
    try:
        it.up()
        it.driver_up()
        it.start_agent()
        wait_until("8 slots", 90, lambda: it.allocatable() == 8, every=0.5)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)
