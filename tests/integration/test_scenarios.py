"""The agent under hami-simkubelet: the very scenarios that tests/e2e runs against the real kubelet."""
import os
import shutil
import subprocess
import tempfile

import pytest

pytest.register_assert_rewrite("node.scenarios")

from node.base import Pod  # noqa: E402
from node.fixtures import clean, serve  # noqa: E402,F401  (pytest runs clean)
from node.scenarios import *  # noqa: E402,F401,F403  (pytest collects the shared tests)
from node.scenarios import PROBE, SHELL, check_a_new_configuration_drops_no_pod, probe_json, slice_bytes  # noqa: E402
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


def test_a_new_configuration_drops_no_pod(node):
    check_a_new_configuration_drops_no_pod(node)


def test_a_plain_user_is_held_too_and_can_only_write_the_region(node, needs_root):
    user = "setpriv --reuid=1000 --regid=1000 --clear-groups"
    usage = "/run/hami-vgpu/usage"
    node.folder.chmod(0o755)  # the driver's socket is below
    node.create(Pod.one("user", [*SHELL, f"{user} touch {usage}/more && echo made; {user} test -w {usage}/region && "
                                         f"echo region; exec {user} {PROBE} fill"]))
    node.wait_phase("user", "Succeeded", seconds=10)
    output = node.output("user")
    assert "made" not in output.split() and "region" in output.split()
    seen = probe_json(output)
    assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert slice_bytes(node) * 3 // 4 < seen["granted"] <= slice_bytes(node)
    node.delete("user")
