"""The agent as users run it: our image and the manifests of deploy/examples, and what a user sees when a mount is missing."""
import os
import re
import shutil
import tempfile

import pytest

from node.base import Pod, wait_until
from node.deployed import DeployedNode
from node.scenarios import PROBE, probe_json, slice_bytes


class Guide(DeployedNode):
    """The guide's own numbers: 4 slots of 5120 MiB on each card."""
    slot_mib = 5120


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-ds-")
    it = Guide(folder, "slices.yaml", card_file="a100x8-nvlink.yaml", slots=4)
    try:
        it.up()
        it.driver_up()
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def deployed(node, request):
    """The example that the test names, without a pod of anyone's left behind it."""
    def start(example, *flags, **kw):
        node.example = example
        node.start_agent(*flags, **kw)
        return node
    yield start
    node.delete_all()
    node.stop_agent()
    node.config_maps = {}


def wait_allocatable(node, count=32):
    node.wait_registered()
    wait_until(f"allocatable {count}", 90, lambda: node.allocatable() == count, every=1)


def said(node, text):
    """Whether the agent said so; a bool, since pytest would print the whole log."""
    return re.search(text, node.logs()) is not None


def held_to(node, name, slots):
    """A pod of so many slots fills what it has: no more than that, and nearly all of it."""
    node.create(Pod.one(name, [PROBE, "fill"], vgpu=slots))
    node.wait_phase(name, "Succeeded")
    seen = probe_json(node.output(name))
    assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert slice_bytes(node, slots) * 3 // 4 < seen["granted"] <= slice_bytes(node, slots)
    return seen


def test_the_guide_s_daemonset_with_late_binding_s_mounts(deployed):
    node = deployed("slices.yaml")
    wait_allocatable(node)
    held_to(node, "one", 1)
    held_to(node, "two", 2)
    assert len(node.leftovers()["specs"]) == 2, "late: each container's spec"
    assert said(node, "give this pod hostPID"), "what the guide's manifest lacks"


def test_the_guide_s_daemonset_as_it_stands_binds_classic(deployed):
    node = deployed("slices-classic.yaml")
    specs = node.leftovers()["specs"]  # of other tests, whose manifest lets the agent see no end
    wait_allocatable(node)
    held_to(node, "one", 1)
    held_to(node, "two", 2)
    assert node.leftovers()["specs"] == specs, "no spec of its own"
    assert said(node, "binding classic") and said(node, "it is kept in the kubelet's folder")


def test_least_privilege(deployed):
    node = deployed("slices-least-privilege.yaml", env={"HAMI_VGPU_MEMORY_MB_PER_CORE": "5120"})
    wait_allocatable(node)
    held_to(node, "one", 1)
    node.delete("one")
    wait_until("nothing is left: it sees that containers end", 60, node.no_leftovers, every=0.5)
    assert not said(node, "hostPID")
    text = node.metrics()
    assert re.search(r'^hami_agent_container_starts_total\{resource="hami.com/vgpu",result="ok"\} 1$', text, re.M), text
    assert 'node="node1"' in text


def test_the_self_test_refuses_a_cdi_folder_that_is_no_host_mount(deployed):
    node = deployed("slices-classic.yaml", binding="late")
    text = wait_until("the agent says what to mount", 60,
                      lambda: (lambda t: t if re.search(r"hostPath \S*/run/cdi at \S*/run/cdi", t) else None)(node.logs()), every=0.5)
    assert node.allocatable() == 0, text


def test_an_agent_that_is_killed_comes_back_by_itself(deployed):
    node = deployed("slices.yaml")
    wait_allocatable(node)
    node.create(Pod.one("under", ["/bin/sleep", "1000"]))
    node.wait_running(["under"])
    pid = node.agent_pid()
    os.kill(pid, 9)
    wait_until("another process", 60, lambda: node.agent_pid() != pid, every=0.2)
    wait_allocatable(node)
    held_to(node, "after", 1)
    assert node.phase("under") == "Running" and node.restarts("under") == 0
