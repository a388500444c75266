"""The agent under hami-simkubelet: the same scenarios that tests/e2e runs under a real kubelet."""
import tempfile

import pytest
from node.base import wait_until
from node.scenarios import *  # noqa: F401,F403  (pytest collects the shared tests)
from node.simulated import SimulatedNode
from test_simkubelet import cannot_make_containers

pytestmark = pytest.mark.skipif(cannot_make_containers(), reason="no namespaces for this user")


@pytest.fixture(scope="module")
def node():
    it = SimulatedNode(tempfile.mkdtemp(prefix="hm-", dir="/tmp"))
    try:
        it.up("--retry-ms=1000")
        it.driver_up()
        it.start_agent()
        wait_until("allocatable", 20, lambda: it.allocatable() == 8)
        yield it
    finally:
        it.down()


@pytest.fixture(autouse=True)
def clean(node):
    yield
    node.delete_all()
    if node.agent is None or node.agent.poll() is not None:
        node.agent = None
        node.start_agent()
    wait_until("allocatable", 20, lambda: node.allocatable() == 8)
