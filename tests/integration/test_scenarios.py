"""The agent under hami-simkubelet: the very scenarios that tests/e2e runs against the real kubelet."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
pytest.register_assert_rewrite("node.scenarios")

from node.base import wait_until  # noqa: E402
from node.scenarios import *  # noqa: E402,F401,F403  (pytest collects the shared tests)
from node.simulated import SimulatedNode  # noqa: E402


def cannot_make_containers():
    return subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "-m", "-p", "-f", "true"],
                          capture_output=True, check=False).returncode != 0


pytestmark = pytest.mark.skipif(cannot_make_containers(), reason="no namespaces for this user")


@pytest.fixture(scope="module")
def node():
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = SimulatedNode(folder, card_file="t4x2.yaml", slots=4)
    try:
        it.up()
        it.driver_up()
        it.start_agent()
        wait_until("allocatable", 20, lambda: it.allocatable() == 8)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def clean(node):
    yield
    node.delete_all()
    if node.agent is None or node.agent.poll() is not None:
        node.agent = None
        node.start_agent()
        wait_until("allocatable", 20, lambda: node.allocatable() > 0)
