"""The agent under a real kubelet and containerd: the shared scenarios, and what only a real cluster shows."""
import concurrent.futures
import json
import os
import shutil
import tempfile
import time

import pytest

from node.base import MIB, Pod, wait_until
from node.fixtures import clean, serve  # noqa: F401  (pytest runs clean)
from node.real import CLUSTER, RealNode
from node.scenarios import *  # noqa: F401,F403  (pytest collects the shared tests)
from node.scenarios import PROBE, check_a_new_configuration_drops_no_pod, hold, probe_json, slice_bytes


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-e2e-")
    it = RealNode(folder, card_file="a100x8-nvlink.yaml", slots=6)
    try:
        serve(it, 8 * 6)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def running_seconds(node, pods):
    start = time.monotonic()
    node.create(*pods)
    node.wait_running([p.name for p in pods])
    return time.monotonic() - start


def test_forty_pods_at_once(node, record_property):
    """The same pods without and with a vGPU each; every one has a slot of its own."""
    seconds = {}
    for kind, vgpu in (("bare", 0), ("vgpu", 1)):
        names = [f"{kind}{i}" for i in range(40)]
        seconds[kind] = running_seconds(node, [Pod.one(n, ["/bin/sleep", "1000"], vgpu=vgpu) for n in names])
        record_property(f"forty_pods_{kind}_s", f"{seconds[kind]:.2f}")
        if vgpu:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                seen = list(pool.map(lambda n: probe_json(node.execute(n, [PROBE, "info"])), names))
            assert len({s["HAMI_VGPU_UUID"] for s in seen}) == 40
            assert {s["devices"][0]["total"] for s in seen} == {slice_bytes(node)}
        node.delete(*names)
    print(f"40 pods to running: {seconds['vgpu']:.2f} s with a vGPU each, {seconds['bare']:.2f} s without: {seconds['vgpu'] / seconds['bare']:.2f}")
    assert seconds["vgpu"] < 3 * seconds["bare"], "a serialised Allocate or PreStart would show (the figure itself is the bench's)"
    wait_until("nothing is left of forty pods", 60, node.no_leftovers, every=0.5)


def test_a_non_root_container_is_held_too(node):
    manifest = node.manifest(Pod.one("user", [PROBE, "fill"]))
    manifest["spec"]["securityContext"] = {"runAsUser": 1000, "runAsGroup": 1000}
    node.kubectl("apply", "-f", "-", text_in=json.dumps(manifest))
    node.pods.add("user")
    node.wait_phase("user", "Succeeded")
    seen = probe_json(node.output("user"))
    assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert seen["granted"] <= slice_bytes(node)


def test_exec_into_the_container_is_held_by_the_same_slice(node):
    node.create(Pod.one("ex", hold(mib=slice_bytes(node) // MIB * 2 // 3)))
    node.wait_running(["ex"])
    wait_until("the holder allocated", 30, lambda: "allocated" in node.output("ex"), every=0.2)
    seen = probe_json(node.execute("ex", [PROBE, "alloc", str(slice_bytes(node) // MIB * 2 // 3)]))
    assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_a_new_configuration_drops_no_pod(node):
    check_a_new_configuration_drops_no_pod(node)


def test_classic_binding(node):
    node.stop_agent()
    node.start_agent(binding="classic")
    wait_until("allocatable", 60, lambda: node.allocatable() > 0, every=0.2)
    try:
        node.create(Pod.one("classic", [PROBE, "fill"], vgpu=2))
        node.wait_phase("classic", "Succeeded")
        seen = probe_json(node.output("classic"))
        assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
        assert slice_bytes(node, 2) * 3 // 4 < seen["granted"] <= slice_bytes(node, 2)
        node.delete("classic")
    finally:
        node.stop_agent()
        node.start_agent()
        wait_until("allocatable", 60, lambda: node.allocatable() > 0, every=0.2)


def test_nothing_of_the_cluster_lies_outside(node):
    """The cluster's own mounts and processes live in its namespaces: the machine's mount table has none of them."""
    assert node.allocatable() > 0
    outside = open("/proc/mounts", encoding="utf-8").read()
    assert f" {CLUSTER}/" not in outside
