"""The agent as users run it: an image, a DaemonSet, host folders mounted into it."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from node.base import BUILD, REPO, Pod, wait_until
from node.real import CLUSTER, RealNode, script
from node.scenarios import PROBE, probe_json, slice_bytes

AGENT_IMAGE = "localhost/hami-device-plugin:1"


def agent_image(folder):
    """hami-device-plugin, hami-smi, libvgpu.so and the shared libraries they need, as one layer."""
    root = f"{folder}/root"
    for d in ("bin", "lib", "tmp", "etc", "lib64", "lib/x86_64-linux-gnu", "run", "var"):
        os.makedirs(f"{root}/{d}", exist_ok=True)
    for program in (BUILD / "bin/hami-device-plugin", BUILD / "bin/hami-smi", "/bin/dash", "/bin/cat", "/bin/sleep"):
        shutil.copy2(program, f"{root}/bin")
        for word in subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout.split():
            if word.startswith("/") and ".so" in word:
                to = root + ("/lib64/" if "ld-linux" in word else "/lib/x86_64-linux-gnu/") + os.path.basename(word)
                shutil.copy2(os.path.realpath(word), to)
    os.symlink("dash", f"{root}/bin/sh")
    shutil.copy2(BUILD / "lib/libvgpu.so", f"{root}/lib/libvgpu.so")
    script("mkimage.sh", root, AGENT_IMAGE, f"{folder}/agent.tar", '["/bin/hami-device-plugin"]', '["PATH=/bin"]')
    script("in", "ctr", "images", "import", f"{folder}/agent.tar",
           env={"CONTAINERD_ADDRESS": str(CLUSTER / "run/containerd.sock"), "CONTAINERD_NAMESPACE": "k8s.io"})


def daemonset(node, cdi=True):
    def host(name, path):
        return {"name": name, "hostPath": {"path": path}}
    # The folders are mounted at their host paths: what the agent writes into specs are host paths.
    mounts = {"kubelet": "/var/lib/kubelet/device-plugins", "podres": "/var/lib/kubelet/pod-resources",
              "state": str(node.state), "driver": str(node.sim), "build": str(BUILD)}
    if cdi:
        mounts["cdi"] = "/run/cdi"
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "hami", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": {"app": "hami"}},
                     "template": {"metadata": {"labels": {"app": "hami"}}, "spec": {
                         "hostPID": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 2,
                         "containers": [{
                             "name": "hami-device-plugin", "image": AGENT_IMAGE, "imagePullPolicy": "Never",
                             "args": [f"--state-dir={node.state}", "--cdi-dir=/run/cdi", f"--nvml-library={BUILD}/sim/libnvidia-ml.so.1",
                                      f"--nvidia-cdi-spec={node.sim}/cdi/nvidia.json", "--libvgpu=/lib/libvgpu.so", "--v=4"],
                             "env": [{"name": "HAMI_SIM_DIR", "value": str(node.sim)},
                                     {"name": "HAMI_VGPU_CORES_PER_DEVICE", "value": str(node.slots)}],
                             "securityContext": {"privileged": True},
                             "volumeMounts": [{"name": n, "mountPath": p} for n, p in mounts.items()]}],
                         "volumes": [host(n, p) for n, p in mounts.items()]}}}}


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-ds-")
    it = RealNode(folder, card_file="t4x2.yaml", slots=4)
    try:
        it.up()
        it.driver_up()
        it.state.mkdir(parents=True, exist_ok=True)
        agent_image(folder)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def agent_logs(node):
    return node.kubectl("-n", "kube-system", "logs", "-l", "app=hami", "--tail=200", check=False)


def test_the_self_test_refuses_a_cdi_folder_that_is_no_host_mount(node):
    node.kubectl("apply", "-f", "-", text_in=json.dumps(daemonset(node, cdi=False)))
    try:
        text = wait_until("the agent says what to mount", 60,
                          lambda: (lambda t: t if "hostPath /run/cdi at /run/cdi" in t else None)(agent_logs(node)), every=0.5)
        assert node.allocatable() == 0, text
    finally:
        node.kubectl("-n", "kube-system", "delete", "ds", "hami", "--wait=true", "--now")


def test_a_daemonset_serves_pods(node):
    node.kubectl("apply", "-f", "-", text_in=json.dumps(daemonset(node)))
    try:
        wait_until("allocatable 8: " + agent_logs(node)[-1500:], 60, lambda: node.allocatable() == 8, every=0.5)
        node.create(Pod.one("ds", [PROBE, "fill"], vgpu=2))
        node.wait_phase("ds", "Succeeded")
        seen = probe_json(node.output("ds"))
        assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
        assert slice_bytes(node, 2) * 3 // 4 < seen["granted"] <= slice_bytes(node, 2)
        node.delete("ds")
    finally:
        node.kubectl("-n", "kube-system", "delete", "ds", "hami", "--wait=true", "--now")
