"""Late binding under HAMi's resources on a real kubelet and containerd; this module is the scheduler."""
import json
import os
import random
import shutil
import tempfile
import time

import pytest

from node.base import MIB, Container, Pod, wait_until
from node.fixtures import clean  # noqa: F401  (pytest runs it)
from node.hami import ALLOCATED, GPU, LOCK, PHASE, TO_ALLOCATE, device_text
from node.real import CLUSTER, RealNode
from node.scenarios import PROBE, SHELL, hold

SPLIT = 10


class RealHami(RealNode):
    resource = GPU

    def start_agent(self, *flags, env=None, binding="late"):
        super().start_agent("--mode=hami", f"--kubeconfig={CLUSTER}/pki/admin.conf", "--node-name=node1",
                            f"--device-split-count={SPLIT}", *flags, env=env, binding=binding)

    def allocatable(self):
        return int(self.kubectl("get", "node", "node1", "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}") or 0)

    def uuids(self):
        return [c["uuid"] for c in self.driver_status()["cards"]]

    def placed(self, pod, entries, marks=()):
        """The manifest as filter and bind leave it: bound here, with the allocation."""
        manifest = self.manifest(pod)
        for c in manifest["spec"]["initContainers"] + manifest["spec"]["containers"]:
            if "resources" in c:
                c["resources"]["limits"] = {GPU: n for n in c["resources"]["limits"].values()}
        text, now = device_text(entries), str(int(time.time()))
        manifest["metadata"]["annotations"] = {
            ALLOCATED: text, TO_ALLOCATE: text, "hami.io/vgpu-node": "node1", "hami.io/vgpu-time": now,
            "hami.io/bind-time": now, PHASE: "allocating", **dict(marks)}
        manifest["spec"]["nodeName"] = "node1"
        return manifest

    def place(self, *manifests):
        self.kubectl("apply", "-f", "-", text_in="\n---\n".join(json.dumps(m) for m in manifests))
        self.pods |= {m["metadata"]["name"] for m in manifests}

    def annotations(self, name):
        return self.pod(name)["metadata"]["annotations"]


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-e2e-")
    it = RealHami(folder, card_file="a100x8-nvlink.yaml")
    try:
        it.up()
        it.driver_up()
        it.start_agent()
        wait_until(f"allocatable; the agent said: {it.agent_log}", 90, lambda: it.allocatable() == 8 * SPLIT, every=0.5)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def totals(text):
    """{card: MiB} of the last that `vgpu-probe info` said."""
    said = [line for line in text.splitlines() if '"devices"' in line]
    return {d["uuid"]: d["total"] // MIB for d in json.loads(said[-1])["devices"]}


def test_init_sidecar_and_main_containers_have_their_own(node):
    cards = node.uuids()
    says, stays = SHELL + [f"{PROBE} info"], SHELL + [f"{PROBE} info; exec sleep 1000"]
    pod = Pod("many", [Container(says, 1, "i1", init=True), Container(stays, 1, "side", sidecar=True),
                       Container(SHELL + ["exec sleep 1000"], 0, "none"), Container(stays, 1, "c1"), Container(stays, 2, "c2")])
    shares = {"i1": [(cards[0], 700, 0)], "side": [(cards[0], 600, 0)], "none": [], "c1": [(cards[1], 500, 0)],
              "c2": [(cards[0], 400, 0), (cards[2], 300, 0)]}
    node.place(node.placed(pod, list(shares.values())))
    node.wait_running(["many"])
    for name, entry in shares.items():
        if entry:
            seen = wait_until(f"{name}'s probe", 30, lambda n=name: '"devices"' in node.output("many", n) and node.output("many", n))
            assert totals(seen) == {u: m for u, m, _ in entry}, name
    wait_until("the one patch", 10, lambda: node.annotations("many")[PHASE] == "success")
    marks = node.annotations("many")
    assert marks[TO_ALLOCATE] == ";;;;;;" and marks[ALLOCATED] == device_text(list(shares.values()))


def test_fifty_pods_in_crowds_are_never_swapped(node):
    cards = node.uuids()
    for crowd in range(5):
        want = {f"p{crowd}-{i}": (random.choice(cards), 1000 + 37 * i + crowd) for i in range(10)}
        manifests = [node.placed(Pod.one(n, hold(mib=1)), [[(*share, 0)]]) for n, share in want.items()]
        random.shuffle(manifests)
        node.place(*manifests)
        node.wait_running(list(want))
        for name, (uuid, mib) in want.items():
            seen = wait_until(f"{name}'s probe", 30, lambda n=name: '"devices"' in node.output(n) and node.output(n))
            assert totals(seen) == {uuid: mib}, name
        node.delete(*want)


def test_the_lock_is_released_at_allocate(node):
    value = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) + ",default,locked"
    node.kubectl("annotate", "node", "node1", f"{LOCK}={value}", "--overwrite")
    node.place(node.placed(Pod.one("locked", hold(mib=1)), [[(node.uuids()[3], 900, 0)]]))

    def lock():
        return json.loads(node.kubectl("get", "node", "node1", "-o", "json"))["metadata"]["annotations"].get(LOCK)
    wait_until("the lock is gone", 10, lambda: lock() is None)
    node.wait_running(["locked"])


def test_a_refused_pod_says_why(node):
    node.place(node.placed(Pod.one("zero", hold(mib=1)), [[(node.uuids()[0], 0, 0)]]))

    def said():
        return node.kubectl("get", "events", "--field-selector", "involvedObject.name=zero", "-o", "jsonpath={.items[*].message}")
    wait_until("the kubelet's event and ours", 60, lambda: said().count("a limit begins at 1 MiB") >= 2, every=0.5)
    assert node.annotations("zero")[PHASE] == "failed"


def test_an_annotation_of_the_pods_own_injects_nothing(node):
    """Names of our CDI devices are numbers and easily guessed: a pod's annotation that names another's must not matter."""
    card = node.uuids()[5]
    node.place(node.placed(Pod.one("holder", hold(mib=1)), [[(card, 4000, 0)]]))
    node.wait_running(["holder"])
    (spec,) = [p for p in node.cdi_dir().glob("hami-vgpu-v.*.json")
               if "4194304000" in (node.state / "alloc" / p.name.split("v.")[1].removesuffix(".json") / "limits").read_text()]
    device = f"hami.io/vgpu={json.loads(spec.read_text())['devices'][0]['name']}"
    marks = {"cdi.k8s.io/mine": device, "cdi.k8s.io/hami-vgpu_1": device, "io.kubernetes.cri-o.cdi/x": device}
    look = SHELL + ["env; ls /run/hami-vgpu /dev; exec sleep 1000"]
    bare = node.manifest(Pod.one("thief", look))
    bare["metadata"]["annotations"] = marks
    bare["spec"]["nodeName"] = "node1"
    node.place(bare, node.placed(Pod.one("second", hold(mib=1)), [[(node.uuids()[6], 1500, 0)]], marks=marks))
    node.wait_running(["thief", "second"])
    seen = wait_until("what the thief sees", 20, lambda: "HOSTNAME" in node.output("thief") and node.output("thief"))
    assert "HAMI_VGPU" not in seen and "nvidia0" not in seen and card not in seen
    seen = wait_until("what the second sees", 20, lambda: '"devices"' in node.output("second") and node.output("second"))
    assert totals(seen) == {node.uuids()[6]: 1500}
