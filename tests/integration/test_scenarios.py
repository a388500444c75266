"""The agent under hami-simkubelet: the very scenarios that tests/e2e runs against the real kubelet."""
import os
import shutil
import subprocess
import tempfile

import pytest

pytest.register_assert_rewrite("node.scenarios")

from node.fixtures import clean, serve  # noqa: E402,F401  (pytest runs clean)
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
        serve(it, 2 * 4)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)
