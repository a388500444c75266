"""Mode hami on the real cluster: deploy/examples/hami.yaml with its RBAC, pods bound as a scheduler does it. What counts is
what a program sees inside the container."""
import itertools
import json
import os
import shutil
import tempfile
import time

import pytest

from node.base import MIB, Container, Pod, wait_until
from node.hami import ALLOCATED, LOCK, PHASE, TO_ALLOCATE
from node.hami_real import PODS, HamiDeployed, serve_hami
from node.real import script
from node.scenarios import PROBE, SHELL, hold, probe_json


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-hm-")
    it = HamiDeployed(folder, "hami.yaml", card_file="a100x8-nvlink.yaml")
    try:
        serve_hami(it, 8)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def clean(node):
    yield
    node.delete_all()


@pytest.fixture
def classic(node):
    """The agent binding classic, for one test."""
    restart(node, "--binding=classic")
    node.pods_bring_the_driver = True
    yield
    node.pods_bring_the_driver = False
    node.delete_all()
    restart(node)


def restart(node, *flags):
    node.stop_agent()
    wait_until("nothing allocatable", 60, lambda: node.allocatable() == 0, every=0.2)
    node.start_agent(*flags)
    wait_until("allocatable", 90, lambda: node.allocatable() == 80, every=0.2)


def inside(node, name, container="c"):
    """[(uuid, MiB)] as the program in the container sees its cards."""
    return [(d["uuid"], d["total"] // MIB) for d in probe_json(node.output(name, container))["devices"]]


def info(name, vgpu=1, before=""):
    return Pod.one(name, SHELL + [f"{before}exec {PROBE} info"], vgpu=vgpu)


def check_one(node):
    card = node.uuids()[3]
    node.place(info("one"), [[(card, 3000, 30)]])
    node.wait_phases(["one"], "Succeeded")
    assert inside(node, "one") == [(card, 3000)]
    node.wait_finished("one")
    marks = node.annotations("one")
    assert marks[ALLOCATED] == f"{card},NVIDIA,3000,30:;", "the scheduler's, untouched"
    assert set(marks[TO_ALLOCATE]) == {";"}, "nothing is left to allocate"


def test_the_scheduler_s_card_and_limit(node):
    check_one(node)


def test_the_scheduler_s_card_and_limit_classic(node, classic):
    check_one(node)


def check_containers(node):
    """Init container, sidecar, one without a card between two with one: each its own."""
    a, b, c = node.uuids()[:3]
    pod = Pod("many", [Container([PROBE, "info"], 1, "init", init=True),
                       Container(SHELL + [f"{PROBE} info; exec sleep 1000"], 1, "side", sidecar=True),
                       Container([PROBE, "info"], 1, "first"), Container(["/bin/sleep", "0"], 0, "none"),
                       Container([PROBE, "info"], 2, "last")])
    node.place(pod, [[(a, 1000, 10)], [(c, 5000, 50)], [(b, 2000, 20)], [], [(c, 3000, 30), (a, 4000, 40)]])
    node.wait_phases(["many"], "Succeeded")
    assert inside(node, "many", "init") == [(a, 1000)]
    assert inside(node, "many", "side") == [(c, 5000)]
    assert inside(node, "many", "first") == [(b, 2000)]
    assert sorted(inside(node, "many", "last")) == sorted([(c, 3000), (a, 4000)])
    node.wait_finished("many")


def test_each_container_has_its_own(node):
    check_containers(node)


def test_each_container_has_its_own_classic(node, classic):
    check_containers(node)


def test_the_lock_of_hami_s_scheduler_is_released(node):
    """Held for the pod that is being bound, given back by the agent; another's lock stays."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    node.set_lock(f"{now},default,locked")
    node.place(info("locked"), [[(node.uuids()[0], 1000, 0)]])
    wait_until("the lock is gone", 30, lambda: LOCK not in node.node_annotations(), every=0.1)
    node.wait_phases(["locked"], "Succeeded")
    # The other's pod is there and has not started: its scheduler still holds it.
    node.submit(info("other"))
    node.set_lock(f"{now},default,other")
    node.place(info("mine"), [[(node.uuids()[0], 1000, 0)]])
    node.wait_phases(["mine"], "Succeeded")
    node.wait_finished("mine")
    assert node.node_annotations()[LOCK] == f"{now},default,other"
    node.set_lock(None)


def test_a_refused_pod_says_why(node):
    node.place(info("zero"), [[(node.uuids()[0], 0, 0)]])

    def said():
        return node.kubectl("get", "events", "--field-selector", "involvedObject.name=zero", "-o", "jsonpath={.items[*].message}")
    wait_until("the kubelet's event and ours", 60, lambda: said().count("a limit begins at 1 MiB") >= 2, every=0.5)
    assert node.annotations("zero")[PHASE] == "failed"


def test_an_annotation_of_the_pods_own_injects_nothing(node):
    """Names of our CDI devices are numbers and easily guessed: a pod's annotation that names another's must not matter."""
    theirs, mine = node.uuids()[5:7]
    node.place(Pod.one("holder", hold(mib=1)), [[(theirs, 4000, 0)]])
    node.wait_phases(["holder"], "Running")
    (spec,) = [p for p in node.cdi_dir().glob("hami-vgpu-v.*.json")
               if str(4000 * MIB) in (node.state / "alloc" / p.name.split("v.")[1].removesuffix(".json") / "limits").read_text()]
    device = f"hami.io/vgpu={json.loads(spec.read_text())['devices'][0]['name']}"
    marks = {"cdi.k8s.io/mine": device, "cdi.k8s.io/hami-vgpu_1": device, "io.kubernetes.cri-o.cdi/x": device}
    thief = node.manifest(Pod.one("thief", SHELL + ["env; ls /run/hami-vgpu /dev; exec sleep 1000"], vgpu=0))
    thief["metadata"]["annotations"], thief["spec"]["nodeName"] = marks, "node1"
    node.pods.add("thief")
    node.api("POST", PODS, thief)
    node.place(info("second"), [[(mine, 1500, 0)]], **marks)
    node.wait_phases(["second"], "Succeeded")
    assert inside(node, "second") == [(mine, 1500)]
    node.wait_phases(["thief"], "Running")
    seen = wait_until("what the thief sees", 20, lambda: "HOSTNAME" in node.output("thief") and node.output("thief"))
    assert "HAMI_VGPU" not in seen and "nvidia0" not in seen and theirs not in seen


def test_forty_pods_at_once(node, record_property):
    """Beside the same pods without devices, by the same scheduler. Every one has the card and the limit that it was given."""
    cards = node.uuids()
    seconds = {}
    for kind in ("bare", "hami"):
        pods = {f"{kind}{i}": (cards[i % 8], 1000 + i) for i in range(40)}
        uids = {n: node.submit(Pod.one(n, SHELL + [f"{PROBE} info; exec sleep 1000"], vgpu=int(kind == "hami"))) for n in pods}
        start = time.monotonic()
        for name, (card, mib) in pods.items():
            node.bind(name, uids[name], [[(card, mib, 5)]] if kind == "hami" else None)
        node.wait_phases(pods, "Running")
        seconds[kind] = time.monotonic() - start
        record_property(f"forty_pods_{kind}_s", f"{seconds[kind]:.2f}")
        if kind == "hami":
            for name, want in pods.items():
                wait_until(f"{name} wrote", 30, lambda n=name: "{" in node.output(n), every=0.1)
                assert inside(node, name) == [want]
            for name in pods:
                node.wait_finished(name)
        node.delete(*pods)
    print(f"40 pods from bind to running: {seconds['hami']:.2f} s with a card each, {seconds['bare']:.2f} s without: "
          f"{seconds['hami'] / seconds['bare']:.2f}")
    assert seconds["hami"] < 3 * seconds["bare"], "a serialised Allocate or PreStart would show (the figure itself is the bench's)"
    wait_until("nothing is left of forty pods", 60, node.no_leftovers, every=0.5)


def test_pods_of_one_shape_are_never_swapped(node):
    """Fifty pairs with equal counts and different memory, each pair bound at once, five pairs under way together."""
    cards = node.uuids()
    numbers = itertools.count()
    for _ in range(10):
        pods = {}
        for pair in range(5):
            for side in "ab":
                n = next(numbers)
                # Containers start in another order than they were bound in.
                pods[f"p{pair}{side}"] = (info(f"p{pair}{side}", before=f"sleep 0.{n * 7 % 10}; "), (cards[n * 3 % 8], 1000 + 10 * n))
        uids = {name: node.submit(pod) for name, (pod, _) in pods.items()}
        for name, (_, (card, mib)) in pods.items():
            node.bind(name, uids[name], [[(card, mib, 1)]])
        node.wait_phases(pods, "Succeeded")
        seen = {name: inside(node, name) for name in pods}
        assert seen == {name: [want] for name, (_, want) in pods.items()}
        node.delete(*pods)


def test_hami_s_chart_runs_our_image(node):
    """What its chart applies, with our image: both containers, the hook behind the start, its RBAC, its files, its port."""
    node.stop_agent()
    wait_until("nothing allocatable", 60, lambda: node.allocatable() == 0, every=0.2)
    node.example = "hami-chart.yaml"
    node.start_agent()
    try:
        wait_until("8 cards in 10 parts", 90, lambda: node.allocatable() == 80, every=0.5)
        wait_until("both containers are ready", 60, lambda: len(node.running()) == 1, every=0.5)
        check_one(node)
        assert "hami_gpu_healthy" in node.metrics(9394), "where HAMi's Service leads"
        assert all(c["count"] == 10 and c["health"] and c["devcore"] == 100 for c in node.registered())
    finally:
        node.delete_all()
        node.example = "hami.yaml"
        restart(node)


def test_a_reboot(node):
    """Everything is killed, state is kept: the agent comes up by itself, and the next pods get what they were given."""
    card = node.uuids()[1]
    node.place(Pod.one("before", SHELL + [f"{PROBE} info; exec sleep 1000"], restart="Always"), [[(card, 2000, 0)]])
    node.wait_phases(["before"], "Running")
    node.api.close()
    node.driver_down()  # it runs in the cluster's namespaces
    script("down.sh")
    script("up.sh")
    node.api = type(node.api)(node)
    node.driver_up()
    wait_until("allocatable again", 120, lambda: node.allocatable() == 80, every=0.5)
    wait_until("the kubelet has decided about the old pod", 60, lambda: node.phases().get("before") in ("Failed", "Running"), every=0.5)
    node.delete("before")
    node.place(info("after"), [[(card, 2500, 0)]])
    node.wait_phases(["after"], "Succeeded")
    assert inside(node, "after") == [(card, 2500)]
    node.wait_finished("after")
    node.delete("after")
    wait_until("nothing is left", 60, node.no_leftovers, every=0.5)
