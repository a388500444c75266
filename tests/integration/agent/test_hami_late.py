"""Late binding under HAMi's resources, whole: hami-simkubelet, the stand-in API server, our agent, and what a program inside
the container sees. What the annotation says is what is seen, whatever else happens."""
import base64
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import pytest

pytest.register_assert_rewrite("node.hami")

from node.base import MIB, Container, Pod, wait_until  # noqa: E402
from node.fixtures import clean  # noqa: E402,F401  (pytest runs it)
from node.hami import ALLOCATED, LOCK, PHASE, TO_ALLOCATE, HamiNode, serve_hami  # noqa: E402
from node.scenarios import PROBE, SHELL, hold  # noqa: E402

from kube.api_server import status  # noqa: E402


class LateNode(HamiNode):
    def start_agent(self, *flags, **kw):
        super().start_agent("--metrics-bind-address=127.0.0.1:0", *flags, **kw)


@pytest.fixture(scope="module")
def node():
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = LateNode(folder, card_file="t4x2.yaml", split=10)
    try:
        serve_hami(it)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def seen(node, name, container="c"):
    """The last that `vgpu-probe info` said in this container."""
    def lines():
        return [line for line in node.output(name, container).splitlines() if '"devices"' in line and line.endswith("}")]
    return json.loads(wait_until(f"{name}/{container} says what it sees", 30, lines)[-1])


def check(node, name, shares, container="c"):
    """shares: [(uuid, MiB), ...]: exactly these cards, each with this total."""
    got = {d["uuid"]: d["total"] for d in seen(node, name, container)["devices"]}
    assert got == {uuid: mib * MIB for uuid, mib in shares}, (name, container)


def claims(node):
    """Each claim's lines as a dictionary; cards as a list."""
    found = []
    for path in (node.state / "claims").iterdir():
        if not path.name.isdigit():
            continue
        lines = [line.partition("=")[::2] for line in path.read_text().splitlines() if "=" in line]
        found.append({**dict(lines), "cards": [v for k, v in lines if k == "card"]})
    return found


def metric(node, name, **labels):
    """The value on the agent's /metrics."""
    port = re.findall(r"serving metrics .*port=(\d+)", node.agent_log.read_text())[-1]
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    inside = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return float(re.search(rf"^{name}{re.escape('{' + inside + '}') if inside else ''} (\S+)$", text, re.M).group(1))


def claims_of(node, name):
    return [c for c in claims(node) if c["pod_name"] == name]


def claim_of(node, name, container="c"):
    (found,) = [c for c in claims_of(node, name) if c["container"] == container]
    return found


def events(node, name):
    return [o["message"] for (plural, _, _), o in node.api.objects.items()
            if plural == "events" and o.get("involvedObject", {}).get("name") == name]


def waiting(node, name, container="c"):
    return node.container(name, container).get("message", "") or node.container(name, container).get("reason", "")


def restart_agent(node, *flags, signo=signal.SIGKILL):
    node.stop_agent(signo)
    node.start_agent(*flags)
    wait_until("registered again", 30, lambda: node.allocatable() > 0)


# ---- what a container gets

def test_the_annotation_is_what_the_container_sees(node):
    a, b = node.uuids()
    manifest = node.bind(Pod.one("one", hold(mib=1), vgpu=1), [[(b, 3000, 30)]])
    time.sleep(0.3)  # so that the agent knows it when the kubelet asks what it would prefer
    node.run(manifest)
    node.wait_running(["one"], seconds=20)
    check(node, "one", [(b, 3000)])
    claim = claim_of(node, "one")
    assert claim["cards"] == [f"{b} memory={3000 * MIB} cores=30 slot=0"]
    assert (claim["resource"], claim["entry"], claim["pod_namespace"]) == ("nvidia.com/gpu", "0", "default")
    assert claim["pod_uid"] == node.api_pod("one")["metadata"]["uid"]
    assert "cores=30" in (node.state / "alloc" / claim["number"] / "limits").read_text()
    assert a not in claim["device"]  # the kubelet was steered to the card that the scheduler chose


def test_one_patch_says_that_the_pod_is_through(node):
    a, b = node.uuids()
    pod = Pod("patched", [Container(SHELL + ["true"], 1, "i", init=True), Container(hold(mib=1), 2), Container(hold(mib=1), 1, "d")])
    text = node.place(pod, [[(a, 500, 10)], [(a, 1000, 0), (b, 1000, 0)], [(b, 700, 0)]])["metadata"]["annotations"][ALLOCATED]
    node.wait_running(["patched"], seconds=20)
    node.wait_finished("patched")
    marks = node.annotations("patched")
    assert marks[ALLOCATED] == text
    assert marks[TO_ALLOCATE] == ";;;;"  # HAMi reads four entries, all empty
    node.settle()
    (patch,) = node.pod_patches("patched")
    assert json.loads(patch.body) == {"metadata": {"uid": node.api_pod("patched")["metadata"]["uid"], "annotations": {
        PHASE: "success", TO_ALLOCATE: ";;;;"}}}
    assert patch.headers["Content-Type"] == "application/merge-patch+json"


def test_restarts_patch_nothing(node):
    a, _ = node.uuids()
    node.place(Pod.one("again", hold(mib=1), restart="Always"), [[(a, 900, 0)]])
    node.wait_running(["again"], seconds=20)
    node.wait_finished("again")
    for round in (1, 2):
        node.kill_container("again")
        wait_until("a restart", 30, lambda r=round: node.restarts("again") >= r)
        check(node, "again", [(a, 900)])
        restart_agent(node)
    node.settle()
    assert len(node.pod_patches("again")) == 1


@pytest.mark.parametrize("text", ["{0},NVIDIA,700,0:;{0},NVIDIA,600,0:;;{1},NVIDIA,500,0:;{0},NVIDIA,400,0:{1},NVIDIA,300,0:;",
                                  "{0},NVIDIA,700,0:;{0},NVIDIA,600,0:;{1},NVIDIA,500,0:;{0},NVIDIA,400,0:{1},NVIDIA,300,0:;"],
                         ids=["whole", "short"])
def test_init_sidecar_and_containers_without_devices(node, text):
    a, b = node.uuids()
    says = SHELL + [f"{PROBE} info"]
    stays = SHELL + [f"{PROBE} info; exec sleep 1000"]
    pod = Pod("many", [Container(says, 1, "i1", init=True), Container(stays, 1, "side", sidecar=True),
                       Container(SHELL + ["exec sleep 1000"], 0, "none"), Container(stays, 1, "c1"), Container(stays, 2, "c2")])
    node.place(pod, [], text=text.format(a, b))
    node.wait_running(["many"], seconds=20)
    check(node, "many", [(a, 700)], "i1")
    check(node, "many", [(a, 600)], "side")
    check(node, "many", [(b, 500)], "c1")
    check(node, "many", [(a, 400), (b, 300)], "c2")
    assert not [c for c in claims_of(node, "many") if c["container"] == "none"]


def test_init_and_main_container_of_one_set_are_not_mixed_up(node):
    """The kubelet hands the finished init container's devices to the main one: equal sets, different memory."""
    a, _ = node.uuids()
    pod = Pod("reuse", [Container(SHELL + [f"{PROBE} info"], 1, "i", init=True), Container(hold(mib=1), 1)])
    node.place(pod, [[(a, 321, 0)], [(a, 4321, 0)]])
    node.wait_running(["reuse"], seconds=20)
    check(node, "reuse", [(a, 321)], "i")
    check(node, "reuse", [(a, 4321)])


def test_the_edges_of_memory(node):
    a, _ = node.uuids()
    node.place(Pod.one("least", hold(mib=0)), [[(a, 1, 100)]])
    node.wait_running(["least"], seconds=20)
    check(node, "least", [(a, 1)])
    node.place(Pod.one("twice", hold(mib=1), vgpu=2), [[(a, 1000, 10), (a, 1000, 10)]])
    node.wait_running(["twice"], seconds=20)
    check(node, "twice", [(a, 2000)])
    assert claim_of(node, "twice")["cards"] == [f"{a} memory={2000 * MIB} cores=20 slot=0"]


def test_priority_and_policy_come_with_the_pod(node):
    a, _ = node.uuids()
    env = {"CUDA_TASK_PRIORITY": "0", "GPU_CORE_UTILIZATION_POLICY": "force", "CUDA_DISABLE_CONTROL": "true"}
    node.place(Pod.one("first", hold(mib=1), env=env), [[(a, 800, 40)]])
    node.place(Pod.one("sly", hold(mib=1), env={"GPU_CORE_UTILIZATION_POLICY": "disable"}), [[(a, 800, 40)]])
    node.wait_running(["first", "sly"], seconds=20)
    check(node, "first", [(a, 800)])
    claim = claim_of(node, "first")
    assert (claim["priority"], claim["policy"], claim["uncontrolled"]) == ("0", "force", "0")
    claim = claim_of(node, "sly")
    assert (claim["priority"], claim["policy"]) == ("1", "default"), "a pod may not switch its own limit off"


# ---- what is refused

@pytest.mark.parametrize("text, reason", [
    ("{0},NVIDIA,0,30:;", "0 MiB"),
    ("{0},NVIDIA,-1,30:;", "-1 MiB"),
    ("{0},NVIDIA,3000000000,30:;", "no 32-bit number"),
    ("{0},NVIDIA,3000:;", "missing fields"),
    ("{0},NVIDIA,300000000,0:;", "more than can be counted"),
    ("{0},NVIDIA,500,0:{1},NVIDIA,500,0:;", "asks for 1 devices, its entry (number 1) has 2"),
    ("{0},NVIDIA,500,0:;{0},NVIDIA,500,0:;", "2 entries with devices (of 2) fit neither the 1 containers"),
    (",,0,0:;", "the scheduler gave container c nothing"),
    ("{0},MLU,500,0:;", "is of type \"MLU\""),
])
def test_an_annotation_that_cannot_be_is_refused_for_good(node, text, reason):
    name = "bad"
    node.place(Pod.one(name, hold(mib=1)), [], text=text.format(*node.uuids()))
    wait_until("bind-phase failed", 15, lambda: node.annotations(name)[PHASE] == "failed")
    wait_until("an event that says why", 15, lambda: any(reason in m for m in events(node, name)))
    assert node.phase(name) == "Pending"
    assert not claims_of(node, name)
    assert len([p for p in node.pod_patches(name) if node.api_pod(name)["metadata"]["uid"] in p.body.decode()]) == 1


def test_what_no_scheduler_of_ours_wrote_is_refused(node):
    a, _ = node.uuids()
    node.place(Pod.one("unplaced", hold(mib=1)), [[(a, 500, 0)]], **{ALLOCATED: None})
    node.place(Pod.one("foreign", hold(mib=1)), [[(a, 500, 0)]], **{"hami.io/vgpu-node": "other"})
    for name, reason in (("unplaced", "was not placed by HAMi's scheduler"), ("foreign", "this is node1")):
        wait_until("an event that says why", 15, lambda n=name, r=reason: any(r in m for m in events(node, n)))
        assert node.phase(name) == "Pending"
        assert not claims_of(node, name)


def test_a_pod_that_is_put_right_starts(node):
    a, _ = node.uuids()
    node.place(Pod.one("healed", hold(mib=1)), [[(a, 0, 0)]])
    wait_until("bind-phase failed", 15, lambda: node.annotations("healed")[PHASE] == "failed")
    tree = node.api_pod("healed")
    marks = {**tree["metadata"]["annotations"], ALLOCATED: f"{a},NVIDIA,640,0:;"}
    node.api.put_tree("pods", "default", {**tree, "metadata": {**tree["metadata"], "annotations": marks}})
    node.wait_running(["healed"], seconds=20)
    check(node, "healed", [(a, 640)])
    node.wait_finished("healed")


def test_a_card_of_another_node_waits(node):
    """It may be one that is lost now: nothing is refused for good."""
    node.place(Pod.one("where", hold(mib=1)), [[("GPU-not-here", 500, 0)]])
    wait_until("the reason in the log", 15, lambda: "does not have the card GPU-not-here" in node.agent_log.read_text())
    node.settle()
    assert node.annotations("where")[PHASE] == "allocating"
    assert not claims_of(node, "where")


# ---- who it is

def test_a_pod_made_again_under_its_name_is_another(node):
    a, b = node.uuids()
    node.place(Pod.one("web-0", hold(mib=1)), [[(a, 1111, 0)]])
    node.wait_running(["web-0"], seconds=20)
    check(node, "web-0", [(a, 1111)])
    first = node.uid("web-0")
    node.delete("web-0")
    node.place(Pod.one("web-0", hold(mib=1)), [[(b, 2222, 0)]])
    node.wait_running(["web-0"], seconds=20)
    assert node.uid("web-0") != first
    check(node, "web-0", [(b, 2222)])
    node.wait_finished("web-0")


def test_two_pods_of_equal_counts_are_never_swapped(node):
    """The kubelet's order is not the scheduler's: what decides is the UID."""
    a, b = node.uuids()
    for round in range(3):
        want = {f"p{i}": [(random.choice((a, b)), 300 + 37 * i + round)] for i in range(6)}
        bound = [node.bind(Pod.one(name, hold(mib=1)), [[(*shares[0], 0)]]) for name, shares in want.items()]
        random.shuffle(bound)
        for manifest in bound:
            node.run(manifest)
        node.wait_running(list(want), seconds=20)
        for name, shares in want.items():
            check(node, name, shares)
        node.delete(*want)
        wait_until("the ids are free again", 30, lambda: node.status()["resources"]["nvidia.com/gpu"].get("allocated", 0) == 0)


# ---- trouble

def test_a_pod_that_the_watch_tells_late(node):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("late", hold(mib=1)), [[(a, 777, 0)]])
    node.api.delete("pods", "default", "late", tell=True)  # not told yet
    node.run(manifest)
    time.sleep(0.7)
    assert node.phase("late") == "Pending"
    node.api.put_tree("pods", "default", manifest)
    node.wait_running(["late"], seconds=20)
    check(node, "late", [(a, 777)])


def test_the_api_server_goes_away_after_the_pod_was_seen(node):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("alone", hold(mib=1), restart="Always"), [[(a, 640, 0)]])
    wait_until("the agent knows it", 10, lambda: node.api.seen(method="GET", path="/api/v1/pods", watch=True))
    time.sleep(0.3)
    node.api.down()
    try:
        node.run(manifest)
        node.wait_running(["alone"], seconds=20)
        check(node, "alone", [(a, 640)])
        # A new agent that has never seen the pod: what was started goes on as it was.
        restart_agent(node)
        node.kill_container("alone")
        wait_until("a restart", 30, lambda: node.restarts("alone") >= 1)
        check(node, "alone", [(a, 640)])
    finally:
        node.api.up()
    node.wait_finished("alone", seconds=60)
    assert node.annotations("alone")[TO_ALLOCATE] == ";;"


def test_a_patch_that_fails_is_tried_again_behind_the_start(node):
    a, _ = node.uuids()
    node.api.fault(status(500), times=2, when=lambda h: h.command == "PATCH" and h.path.endswith("/pods/stubborn"))
    node.place(Pod.one("stubborn", hold(mib=1)), [[(a, 512, 0)]])
    node.wait_running(["stubborn"], seconds=20)
    node.wait_finished("stubborn", seconds=30)
    assert len(node.pod_patches("stubborn")) == 3


@pytest.mark.parametrize("when", ["before the kubelet", "allocated", "started", "patched"])
def test_the_agent_is_killed_at_every_step(node, when):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("steps", hold(mib=1), restart="Always"), [[(a, 1234, 0)]])
    if when == "before the kubelet":
        restart_agent(node)
        node.run(manifest)
    elif when == "allocated":
        node.api.delete("pods", "default", "steps")  # so that it cannot start yet
        node.run(manifest)
        wait_until("Allocate", 10, lambda: manifest["metadata"]["uid"] in
                   (node.plugin_dir() / "kubelet_internal_checkpoint").read_text())
        restart_agent(node)
        node.api.put_tree("pods", "default", manifest)
    elif when == "started":
        node.api.fault(status(500), times=50, when=lambda h: h.command == "PATCH" and h.path.endswith("/pods/steps"))
        node.run(manifest)
        node.wait_running(["steps"], seconds=20)
        node.stop_agent(signal.SIGKILL)
        node.api.faults.clear()
        node.start_agent()
    else:
        node.run(manifest)
        node.wait_finished("steps")
        restart_agent(node)
    node.wait_running(["steps"], seconds=20)
    check(node, "steps", [(a, 1234)])
    node.wait_finished("steps", seconds=30)
    node.settle()
    assert len([p for p in node.pod_patches("steps")]) >= 1
    node.kill_container("steps")
    wait_until("a restart", 30, lambda: node.restarts("steps") >= 1)
    check(node, "steps", [(a, 1234)])


def test_a_checkpoint_that_cannot_be_read_leaves_the_kubelets_list(node):
    a, b = node.uuids()
    manifest = node.bind(Pod.one("torn", hold(mib=1)), [[(a, 765, 0)]])
    node.api.delete("pods", "default", "torn")  # it cannot start yet
    node.run(manifest)
    checkpoint = node.plugin_dir() / "kubelet_internal_checkpoint"
    wait_until("Allocate", 10, lambda: manifest["metadata"]["uid"] in checkpoint.read_text())
    checkpoint.write_text("{torn")
    node.api.put_tree("pods", "default", manifest)
    node.wait_running(["torn"], seconds=20)
    check(node, "torn", [(a, 765)])
    assert "checkpoint cannot be read" in node.agent_log.read_text()
    assert claim_of(node, "torn")["pod_uid"] == manifest["metadata"]["uid"]


def test_a_kubelet_that_lost_its_checkpoint_gives_ids_out_again(node):
    """In mode hami they are counters: the next pod gets its own card and starts, the one that runs keeps what it has."""
    a, b = node.uuids()
    node.place(Pod.one("forgotten", hold(mib=1)), [[(a, 700, 0)]])
    node.wait_running(["forgotten"], seconds=20)
    node.wait_finished("forgotten")
    node.client("kubelet-stop")
    (node.plugin_dir() / "kubelet_internal_checkpoint").unlink()
    node.client("kubelet-start")
    wait_until("registered again", 30, lambda: node.allocatable() == 2 * node.split)
    node.place(Pod.one("next", hold(mib=1)), [[(b, 800, 0)]])
    node.wait_running(["next"], seconds=20)
    check(node, "next", [(b, 800)])
    assert node.phase("forgotten") == "Running"
    time.sleep(8)  # two rounds of the cleaning
    assert claim_of(node, "forgotten")["cards"][0].startswith(a)
    assert "memory" in node.execute("forgotten", ["cat", "/run/hami-vgpu/limits"])


def test_lost_claims_are_made_again(node):
    a, _ = node.uuids()
    node.place(Pod.one("lost", hold(mib=1), restart="Always"), [[(a, 555, 5)]])
    node.wait_running(["lost"], seconds=20)
    node.wait_finished("lost")
    before = claim_of(node, "lost")
    node.set_phase("lost", "Running")
    node.stop_agent(signal.SIGKILL)
    for path in (node.state / "claims").iterdir():
        path.unlink()
    node.start_agent()
    wait_until("the claim is there again", 30, lambda: claims_of(node, "lost"))
    after = claim_of(node, "lost")
    assert {**after, "created_ms": 0} == {**before, "created_ms": 0}
    node.kill_container("lost")
    wait_until("a restart", 30, lambda: node.restarts("lost") >= 1)
    check(node, "lost", [(a, 555)])


def test_nothing_is_left_when_pods_end(node):
    a, _ = node.uuids()
    node.place(Pod.one("ends", [PROBE, "info"]), [[(a, 555, 5)]])
    node.wait_phase("ends", "Succeeded")
    node.delete("ends")
    wait_until("everything is removed", 30, node.no_leftovers)


# ---- the node's lock

def lock_for(node, name, uid=None, age=0):
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))
    tree = node.api.objects["nodes", None, node.name]
    marks = {**tree["metadata"]["annotations"], LOCK: f"{when},default,{name}"}
    node.api.put_tree("nodes", None, {**tree, "metadata": {**tree["metadata"], "annotations": marks}})


def test_the_lock_goes_at_allocate_and_not_before(node):
    a, _ = node.uuids()
    lock_for(node, "locked")
    manifest = node.bind(Pod("locked", [Container(hold(mib=1), 1), Container(hold(mib=1), 1, "d")]), [[(a, 500, 0)], [(a, 600, 0)]])
    time.sleep(1)
    assert LOCK in node.node_annotations(), "its pod is bound and has nothing yet"
    node.run(manifest)
    wait_until("the lock is released", 5, lambda: LOCK not in node.node_annotations())
    node.wait_running(["locked"], seconds=20)
    patches = [json.loads(r.body) for r in node.api.seen(method="PATCH", path=f"/api/v1/nodes/{node.name}")]
    released = [p for p in patches if LOCK in p["metadata"]["annotations"]]
    assert [p["metadata"]["annotations"] for p in released] == [{LOCK: None}]
    assert {"uid", "resourceVersion"} < released[0]["metadata"].keys()


def test_the_lock_of_a_pod_that_has_ended_goes(node):
    a, _ = node.uuids()
    node.bind(Pod.one("rejected", hold(mib=1)), [[(a, 500, 0)]])
    lock_for(node, "rejected")
    time.sleep(0.5)
    assert LOCK in node.node_annotations()
    node.set_phase("rejected", "Failed")
    wait_until("the lock is released", 5, lambda: LOCK not in node.node_annotations())
    node.api.delete("pods", "default", "rejected")


def test_the_lock_of_a_pod_that_is_being_bound_stays_and_of_one_that_is_gone_goes(node):
    node.api.put_tree("pods", "default", {"metadata": {"name": "coming"}, "spec": {"containers": []}, "status": {}})
    lock_for(node, "coming")
    time.sleep(13)
    assert LOCK in node.node_annotations()
    node.api.delete("pods", "default", "coming")
    wait_until("the lock is released", 30, lambda: LOCK not in node.node_annotations())


# ---- what is counted

def test_what_happened_is_on_the_page(node):
    a, b = node.uuids()
    restart_agent(node)
    wait_until("the pods are known", 10, lambda: metric(node, "hami_agent_pods") == 0)
    node.place(Pod.one("good", hold(mib=1), restart="Always", env={"CUDA_DISABLE_CONTROL": "1"}), [[(a, 500, 0)]])
    node.place(Pod.one("bad", hold(mib=1)), [[(a, 0, 0)]])
    node.wait_running(["good"], seconds=20)
    wait_until("both patches", 10, lambda: metric(node, "hami_agent_pod_patches_total", result="ok") == 2)
    node.kill_container("good")
    wait_until("a restart", 30, lambda: node.restarts("good") >= 1)
    assert metric(node, "hami_agent_pods") == 2
    assert metric(node, "hami_agent_late_starts_total", kind="first") == 1
    assert metric(node, "hami_agent_late_starts_total", kind="restart") == 1
    assert metric(node, "hami_agent_start_refusals_total", reason="bad-annotation") >= 1
    assert metric(node, "hami_agent_disable_control_total") == 1
    lock_for(node, "good")
    wait_until("the lock's release is counted", 10, lambda: metric(node, "hami_agent_lock_releases_total", result="ok") == 1)


# ---- signatures

KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def signing(node):
    """sign(manifest) puts the scheduler's signature on a pod that is bound; the agent wants one."""
    keys = node.folder / "keys"
    keys.mkdir()
    (node.folder / "key").write_text(KEY)
    subprocess.run(["openssl", "pkey", "-in", node.folder / "key", "-pubout", "-out", keys / "2026-11"], check=True)
    restart_agent(node, f"--signature-keys={keys}")

    def sign(manifest):
        marks, uid = manifest["metadata"]["annotations"], manifest["metadata"]["uid"]
        text = f"hami-vgpu-v1\n{uid}\n{node.name}\n{marks['hami.io/vgpu-time']}\n{marks[ALLOCATED]}\n\n"
        (node.folder / "text").write_text(text)
        made = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", node.folder / "key", "-in", node.folder / "text"],
                              check=True, capture_output=True).stdout
        marks["hami.io/vgpu-signature"] = "v1.2026-11." + base64.urlsafe_b64encode(made).decode().rstrip("=")
        return node.api.put_tree("pods", "default", manifest)
    yield sign
    restart_agent(node)
    shutil.rmtree(keys)


def test_only_what_our_scheduler_signed_starts(node, signing):
    a, b = node.uuids()
    good = signing(node.bind(Pod.one("signed", hold(mib=1), restart="Always"), [[(a, 700, 0)]]))
    node.run(good)
    node.wait_running(["signed"], seconds=20)
    check(node, "signed", [(a, 700)])
    assert claim_of(node, "signed")["signature"] == good["metadata"]["annotations"]["hami.io/vgpu-signature"]
    # by nobody; another pod's; of less than what is asked for
    stolen = node.bind(Pod.one("stolen", hold(mib=1)), [[(a, 700, 0)]])
    stolen["metadata"]["annotations"]["hami.io/vgpu-signature"] = good["metadata"]["annotations"]["hami.io/vgpu-signature"]
    more = signing(node.bind(Pod.one("more", hold(mib=1)), [[(a, 700, 0)]]))
    more["metadata"]["annotations"][ALLOCATED] = f"{a},NVIDIA,7000,0:;"
    for manifest in (node.bind(Pod.one("unsigned", hold(mib=1)), [[(a, 700, 0)]]), stolen, more):
        node.run(node.api.put_tree("pods", "default", manifest))
        name = manifest["metadata"]["name"]
        wait_until("refused", 15, lambda n=name: node.annotations(n)[PHASE] == "failed")
        assert not claims_of(node, name)
    # Signed anew with more: the first signature is the pod's for good.
    good["metadata"]["annotations"] = {**good["metadata"]["annotations"], ALLOCATED: f"{a},NVIDIA,7000,0:;"}
    signing(good)
    node.kill_container("signed")
    wait_until("refused", 15, lambda: "is another than the one" in node.container("signed").get("message", ""))


# ---- many at once

def test_a_thousand_pods_bound_in_crowds_are_never_swapped(node):
    """Equal counts, different memory and cards, started in another order than bound, and told to us before, while or after
    the kubelet asks: each container sees its own. Each crowd of 18 holds 153 pairs that could be swapped."""
    cards = node.uuids()
    dice = random.Random(time.time_ns())
    done = crowd = 0
    while done < int(os.environ.get("HAMI_LATE_PODS", "1000")):
        crowd += 1
        want = {f"p{crowd}-{i}": (dice.choice(cards), 100 + 17 * i + crowd) for i in range(18)}
        manifests = {name: node.bind(Pod.one(name, [PROBE, "info"]), [[(*share, 0)]]) for name, share in want.items()}
        late = dice.sample(sorted(want), 6)
        for name in late:
            node.api.delete("pods", "default", name)
        order = sorted(want, key=lambda _: dice.random())
        for i, name in enumerate(order):
            node.run(manifests[name])
            if i % 3 == 0 and late:
                node.api.put_tree("pods", "default", manifests[late.pop()])
            time.sleep(dice.choice((0, 0, 0, 0.002, 0.01)))
        wait_until(f"crowd {crowd}", 60, lambda w=want: {p["phase"] for p in node.status()["pods"] if p["name"] in w} == {"Succeeded"})
        for name, share in want.items():
            check(node, name, [share])
        node.delete(*want)
        done += len(want)
    wait_until("nothing is left", 60, node.no_leftovers)
