"""Classic binding under HAMi's scheduler, whole: hami-simkubelet, the stand-in API server, our agent."""
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time

import pytest

pytest.register_assert_rewrite("node.hami", "node.late")

from kubelet_peer import Plugin  # noqa: E402
from node.base import MIB, Container, Pod, wait_until  # noqa: E402
from node.classic import ClassicNode  # noqa: E402
from node.fixtures import clean  # noqa: E402,F401  (pytest runs it)
from node.hami import LOCK, PHASE, TO_ALLOCATE  # noqa: E402
from node.late import check, check_license, claim_of, claims_of, events, lock_for, metric, seen  # noqa: E402
from node.scenarios import PROBE, SHELL, hold  # noqa: E402

from kube.api_server import status  # noqa: E402

SPEC = "k8s.device-plugin.nvidia.com"


@pytest.fixture(scope="module")
def node():
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = ClassicNode(folder, card_file="t4x2.yaml", split=10)
    try:
        it.driver_up()
        it.up()
        it.start_agent()
        it.ready()
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def environment(node, name, container="c"):
    """The container's own, from `env` in it."""
    lines = node.output(name, container).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and line.split("=")[0].replace("_", "").isalnum())


def limits(node, name, container="c"):
    return (node.state / "alloc" / claim_of(node, name, container)["number"] / "limits").read_text()


# ---- what a container gets

def test_everything_is_in_the_answer(node):
    _, b = node.uuids()
    script = f"env; cat /etc/ld.so.preload; stat -L -c '%d %i' /run/hami-vgpu/libvgpu.so {node.hook}/vgpu/libvgpu.so; {PROBE} info"
    node.run(node.knows(node.bind(Pod.one("one", SHELL + [f"{script}; exec sleep 1000"]), [[(b, 3000, 30)]])))
    node.wait_running(["one"], seconds=20)
    check(node, "one", [(b, 3000)])
    env = environment(node, "one")
    assert {k: v for k, v in env.items() if k.startswith(("CUDA_", "NVIDIA_V", "LIBCUDA"))} == {
        "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m", "CUDA_DEVICE_SM_LIMIT": "30", "LIBCUDA_LOG_LEVEL": "1",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{node.hook}/vgpu/{node.uid('one')}.cache", "NVIDIA_VISIBLE_DEVICES": b}
    lines = node.output("one").splitlines()
    assert "/run/hami-vgpu/libvgpu.so" in lines
    (mine, hami) = [line for line in lines if line.replace(" ", "").isdigit()]
    assert mine == hami, "one file under both names, which the loader loads once"
    claim = claim_of(node, "one")
    assert claim["cdi"] == "" and claim["cards"] == [f"{b} memory={3000 * MIB} cores=30 slot=0"]
    assert not list(node.cdi_dir().glob("hami-vgpu-*"))
    assert (node.hook / "vgpu/ld.so.preload").read_text() == f"{node.hook}/vgpu/libvgpu.so\n"


def test_hami_s_cdi_devices(node):
    a, b = node.uuids()
    node.again("--device-list-strategy=cdi-cri")
    spec = json.loads((node.cdi_dir() / f"{SPEC}-gpu.json").read_text())
    assert [d["name"] for d in spec["devices"]] == [a, b]
    plugin = Plugin(node.plugin_dir() / "nvidia-gpu.sock")
    node.knows(node.bind(Pod.one("named", hold(mib=1), vgpu=2), [[(b, 3000, 30), (a, 3000, 30)]]))
    try:
        (answer,) = plugin.allocate([f"{a}-0", f"{a}-1"])
    finally:
        plugin.close()
    assert [d.name for d in answer.cdi_devices] == [f"{SPEC}/gpu={b}", f"{SPEC}/gpu={a}"]
    assert "NVIDIA_VISIBLE_DEVICES" not in answer.envs
    node.again()


def test_the_scheduler_is_told_after_the_last_container(node):
    a, b = node.uuids()
    text = node.bind(Pod("told", [Container(SHELL + ["true"], 1, "i", init=True), Container(hold(mib=1), 2),
                                  Container(hold(mib=1), 1, "d")]), [[(a, 500, 10)], [(a, 1000, 0), (b, 1000, 0)], [(b, 700, 0)]])
    lock_for(node, "told")
    node.run(node.knows(text))
    node.wait_finished("told")
    assert node.annotations("told")[TO_ALLOCATE] == ";;;;"
    wait_until("the lock is released", 10, lambda: LOCK not in node.node_annotations())
    node.wait_running(["told"], seconds=20)
    check(node, "told", [(a, 1000), (b, 1000)])
    check(node, "told", [(b, 700)], "d")
    node.settle()
    assert len(node.pod_patches("told")) == 1


def test_the_pod_s_own_environment_widens_nothing(node):
    a, _ = node.uuids()
    script = f"env; {PROBE} info; CUDA_VISIBLE_DEVICES=1 {PROBE} alloc 1; exec sleep 1000"
    env = {"CUDA_DEVICE_MEMORY_LIMIT_0": "99999m", "CUDA_DEVICE_MEMORY_LIMIT": "0", "CUDA_DISABLE_CONTROL": "true",
           "NVIDIA_VISIBLE_DEVICES": "all", "LD_PRELOAD": "", "GPU_CORE_UTILIZATION_POLICY": "disable"}
    node.run(node.knows(node.bind(Pod.one("sly", SHELL + [script], env=env), [[(a, 777, 30)]])))
    node.wait_running(["sly"], seconds=20)
    totals = {d["uuid"]: d["total"] for d in seen(node, "sly")["devices"]}
    assert totals[a] == 777 * MIB
    assert environment(node, "sly")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "99999m", "the answer's loses: nothing rests on it"
    assert "cores=30" in limits(node, "sly") and "policy=default" in limits(node, "sly")
    wait_until("it sees the other card, and gets nothing of it", 20, lambda: "CUDA_ERROR_OUT_OF_MEMORY" in node.output("sly"))
    for name in ("CUDA_DISABLE_CONTROL", "NVIDIA_VISIBLE_DEVICES"):
        wait_until("an event that says so", 10, lambda n=name: any(n in m for m in events(node, "sly")))


def test_compat_leaves_libvgpu_out(node):
    a, _ = node.uuids()
    node.again("--compat")
    node.run(node.knows(node.bind(Pod.one("free", SHELL + ["cat /etc/ld.so.preload; exec sleep 1000"],
                                          env={"CUDA_DISABLE_CONTROL": "1"}), [[(a, 777, 30)]])))
    node.wait_running(["free"], seconds=20)
    node.settle()
    assert "/run/hami-vgpu" not in node.output("free")
    assert claim_of(node, "free")["uncontrolled"] == "1"
    node.again()


@pytest.mark.parametrize("flags, visible, more", [
    (["--device-list-strategy=envvar"], "{0},{1}", {}),
    (["--device-list-strategy=envvar", "--device-id-strategy=index"], "0,1", {}),
    (["--device-list-strategy=volume-mounts"], "/var/run/nvidia-container-devices", {}),
    (["--device-list-strategy=envvar", "--gds-enabled", "--mofed-enabled", "--gdrcopy-enabled"], "{0},{1}",
     {"NVIDIA_GDS": "enabled", "NVIDIA_MOFED": "enabled", "NVIDIA_GDRCOPY": "enabled"}),
    (["--device-list-strategy=cdi-annotations"], "void", {}),
    (["--device-list-strategy=envvar,cdi-cri", "--device-memory-scaling=1.5"], "void", {"CUDA_OVERSUBSCRIBE": "true"}),
    (["--device-list-strategy=envvar", "--disable-core-limit"], "{0},{1}", {"GPU_CORE_UTILIZATION_POLICY": "disable"}),
])
def test_strategies(node, flags, visible, more):
    """As a container sees them; the runtime that obeys NVIDIA_VISIBLE_DEVICES is not here."""
    a, b = node.uuids()
    node.again(*flags)
    node.run(node.knows(node.bind(Pod.one("way", SHELL + ["env; ls /var/run/nvidia-container-devices; exec sleep 1000"], vgpu=2),
                                  [[(a, 700, 20), (b, 800, 30)]])))
    node.wait_running(["way"], seconds=20)
    node.settle()
    env = environment(node, "way")
    assert env["NVIDIA_VISIBLE_DEVICES"] == visible.format(a, b)
    assert env["CUDA_DEVICE_MEMORY_LIMIT_0"] == "700m" and env["CUDA_DEVICE_MEMORY_LIMIT_1"] == "800m"
    assert env["CUDA_DEVICE_SM_LIMIT_0"] == "20" and env["CUDA_DEVICE_SM_LIMIT_1"] == "30"
    for name in ("NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY", "CUDA_OVERSUBSCRIBE", "GPU_CORE_UTILIZATION_POLICY"):
        assert env.get(name) == more.get(name), name
    if "volume-mounts" in flags[0]:
        assert {a, b} <= set(node.output("way").split())
    node.again()


def test_pass_device_specs(node):
    a, b = node.uuids()
    root = node.folder / "root"
    (root / "dev").mkdir(parents=True, exist_ok=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        if not (root / "dev" / name).exists():
            os.mknod(root / "dev" / name, 0o666 | 0o020000, os.makedev(1, 3))
    node.again("--device-list-strategy=envvar", "--pass-device-specs", f"--dev-root={root}")
    node.run(node.knows(node.bind(Pod.one("specs", SHELL + ["ls /dev; exec sleep 1000"]), [[(b, 700, 20)]])))
    node.wait_running(["specs"], seconds=20)
    node.settle()
    names = node.output("specs").split()
    assert "nvidia1" in names and "nvidiactl" in names and "nvidia0" not in names
    node.again()


def test_hamis_license_is_seen_inside(node):
    check_license(node, lambda pod, entries: node.run(node.knows(node.bind(pod, entries))))


# ---- whose Allocate it is

def test_init_sidecar_and_containers_without_devices(node):
    a, b = node.uuids()
    says, stays = SHELL + [f"{PROBE} info"], SHELL + [f"{PROBE} info; exec sleep 1000"]
    pod = Pod("many", [Container(says, 1, "i1", init=True), Container(stays, 1, "side", sidecar=True),
                       Container(SHELL + ["exec sleep 1000"], 0, "none"), Container(stays, 1, "c1"), Container(stays, 2, "c2")])
    node.run(node.knows(node.bind(pod, [], text=f"{a},NVIDIA,700,0:;{a},NVIDIA,600,0:;{b},NVIDIA,500,0:;{a},NVIDIA,400,0:{b},NVIDIA,300,0:;")))
    node.wait_running(["many"], seconds=20)
    check(node, "many", [(a, 700)], "i1")
    check(node, "many", [(a, 600)], "side")
    check(node, "many", [(b, 500)], "c1")
    check(node, "many", [(a, 400), (b, 300)], "c2")


def test_the_lock_decides(node):
    """Bound both, on different cards, and the kubelet asks for the younger one first."""
    a, b = node.uuids()
    old = node.bind(Pod.one("first", hold(mib=1)), [[(a, 1111, 0)]])
    time.sleep(1.1)  # bind-time has seconds
    young = node.bind(Pod.one("second", hold(mib=1)), [[(b, 2222, 0)]])
    for manifest in (young, old):
        lock_for(node, manifest["metadata"]["name"])
        node.run(node.knows(manifest))
        node.wait_running([manifest["metadata"]["name"]], seconds=20)
    check(node, "first", [(a, 1111)])
    check(node, "second", [(b, 2222)])


def test_the_same_cards_in_another_order_are_put_right(node):
    """Without a lock the one bound first is answered; who was meant is seen when it starts."""
    a, _ = node.uuids()
    node.bind(Pod.one("elder", hold(mib=1)), [[(a, 1111, 10)]])
    time.sleep(1.1)
    young = node.knows(node.bind(Pod.one("junior", hold(mib=1)), [[(a, 2222, 20)]]))
    node.run(young)
    node.wait_running(["junior"], seconds=20)
    check(node, "junior", [(a, 2222)])
    assert "cores=20" in limits(node, "junior")
    node.run(node.api_pod("elder"))
    node.wait_running(["elder"], seconds=20)
    check(node, "elder", [(a, 1111)])
    assert node.said("answered for another container with the same cards")
    assert metric(node, "hami_agent_classic_total", what="moved") >= 1
    assert metric(node, "hami_agent_classic_total", what="guess") >= 1


def test_another_pod_s_card_is_refused(node):
    """What cannot be known at Allocate and cannot be put right: said, and cured by deleting the pod."""
    a, b = node.uuids()
    node.bind(Pod.one("wrong", hold(mib=1)), [[(a, 1111, 0)]])
    time.sleep(1.1)
    young = node.knows(node.bind(Pod.one("right", hold(mib=1)), [[(b, 2222, 0)]]))
    node.run(young)
    wait_until("it says why", 20, lambda: f"given the card {a} of pod default/wrong" in node.container("right")["message"])
    assert node.phase("right") == "Pending"
    node.delete("right", "wrong")
    node.run(node.knows(node.bind(Pod.one("right", hold(mib=1)), [[(b, 2222, 0)]])))
    node.wait_running(["right"], seconds=20)
    check(node, "right", [(b, 2222)])


def test_pods_of_one_card_are_never_swapped(node):
    a, _ = node.uuids()
    for round in range(3):
        want = {f"p{i}": [(a, 300 + 37 * i + round)] for i in range(6)}
        bound = [node.bind(Pod.one(name, hold(mib=1)), [[(*shares[0], 0)]]) for name, shares in want.items()]
        random.shuffle(bound)
        node.knows(None)
        for manifest in bound:
            node.run(manifest)
        node.wait_running(list(want), seconds=30)
        for name, shares in want.items():
            check(node, name, shares)
        node.delete(*want)
        wait_until("the ids are free again", 30, lambda: node.status()["resources"]["nvidia.com/gpu"].get("allocated", 0) == 0)


def test_under_the_lock_no_two_are_swapped(node):
    """As HAMi's scheduler has it: one pod at a time, on either card."""
    cards = node.uuids()
    want = {}
    for i in range(12):
        name, share = f"q{i}", (random.choice(cards), 300 + 37 * i)
        manifest = node.bind(Pod.one(name, hold(mib=1)), [[(*share, 0)]])
        lock_for(node, name)
        node.run(manifest)
        want[name] = [share]
        wait_until("the lock is released", 20, lambda: LOCK not in node.node_annotations())
    node.wait_running(list(want), seconds=30)
    for name, shares in want.items():
        check(node, name, shares)


def test_a_pod_that_the_watch_tells_late(node):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("late", hold(mib=1)), [[(a, 888, 0)]])
    node.api.delete("pods", "default", "late")
    threading.Timer(0.7, lambda: node.api.put_tree("pods", "default", manifest)).start()
    node.run(manifest)
    node.wait_running(["late"], seconds=20)
    check(node, "late", [(a, 888)])


def test_a_pod_that_is_not_told_is_refused_in_time(node):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("never", hold(mib=1)), [[(a, 888, 0)]])
    node.api.delete("pods", "default", "never")
    node.knows(None)
    begun = time.monotonic()
    node.run(manifest)
    node.wait_phase("never", "Failed", seconds=20)
    assert time.monotonic() - begun > 1.5
    assert node.reason("never") == "UnexpectedAdmissionError"
    assert "no binding pod found on node node1" in node.pod("never")["message"]


@pytest.mark.parametrize("text, reason", [
    ("{0},NVIDIA,500,0:{1},NVIDIA,500,0:;", "has 2"),
    ("{0},NVIDIA,0,30:;", "0 MiB"),
    ("GPU-not-here,NVIDIA,500,0:;", "does not have the card GPU-not-here"),
])
def test_what_is_refused_is_told(node, text, reason):
    node.run(node.knows(node.bind(Pod.one("bad", hold(mib=1)), [], text=text.format(*node.uuids()))))
    lock_for(node, "bad")
    node.wait_phase("bad", "Failed", seconds=20)
    assert reason in node.pod("bad")["message"]
    wait_until("bind-phase failed", 15, lambda: node.annotations("bad")[PHASE] == "failed")
    wait_until("an event that says why", 15, lambda: any(reason in m for m in events(node, "bad")))
    assert not claims_of(node, "bad")
    node.set_phase("bad", "Failed")
    wait_until("the lock is released", 20, lambda: LOCK not in node.node_annotations())


# ---- asked again

def test_an_answer_that_was_lost_is_given_again(node):
    a, _ = node.uuids()
    manifest = node.knows(node.bind(Pod.one("twice", hold(mib=1)), [[(a, 999, 0)]]))
    plugin = Plugin(node.plugin_dir() / "nvidia-gpu.sock")
    try:
        first = plugin.allocate([f"{a}-3"])[0]   # nobody keeps this answer
        again = plugin.allocate([f"{a}-3"])[0]
        other = plugin.allocate([f"{a}-4"])[0]
    finally:
        plugin.close()
    assert first == again == other
    node.run(manifest)
    node.wait_running(["twice"], seconds=20)
    check(node, "twice", [(a, 999)])
    (claim,) = claims_of(node, "twice")
    assert f"alloc/{claim['number']}/limits" in str(first)


def test_the_agent_s_memory_is_not_needed(node):
    """Its store is lost while a container runs: the claim is made again from annotation and checkpoint."""
    a, _ = node.uuids()
    node.run(node.knows(node.bind(Pod.one("kept", hold(mib=1), restart="Always"), [[(a, 640, 0)]])))
    node.wait_running(["kept"], seconds=20)
    node.set_phase("kept", "Running")
    number = claim_of(node, "kept")["number"]
    node.stop_agent(signal.SIGKILL)
    for path in (node.state / "claims").iterdir():
        path.unlink()
    node.start_agent()
    wait_until("the claim is there again", 30, lambda: claims_of(node, "kept"))
    assert (claim_of(node, "kept")["number"], claim_of(node, "kept")["cdi"]) == (number, "")
    node.kill_container("kept")
    wait_until("a restart", 30, lambda: node.restarts("kept") >= 1)
    check(node, "kept", [(a, 640)])


def test_a_state_folder_of_any_length_is_ours(node):
    """What the answer mounts is longer than a device id may be: the entry is ours all the same, not another plugin's."""
    a, _ = node.uuids()
    short = node.state
    node.state = node.folder / ("s" * 200) / ("a state folder" + "e" * 100)
    try:
        node.again(f"--state-dir={node.state}")
        node.run(node.knows(node.bind(Pod.one("deep", hold(mib=1)), [[(a, 640, 0)]])))
        node.wait_running(["deep"], seconds=20)
        check(node, "deep", [(a, 640)])
        assert claim_of(node, "deep")["state"] == "active", "its start was one of another plugin's"
        node.delete("deep")
    finally:
        node.state = short
        node.again()


def test_what_hami_s_plugin_allocated_starts_again(node):
    """We came in its place: its answer stands in the checkpoint, and a container that restarts keeps what that gave it."""
    a, _ = node.uuids()
    node.run(node.knows(node.bind(Pod.one("before", SHELL + ["exec sleep 1000"], restart="Always"), [[(a, 640, 0)]])))
    node.wait_running(["before"], seconds=20)
    node.stop_agent(signal.SIGKILL)
    shutil.rmtree(node.state / "claims")
    elsewhere = node.folder / "elsewhere"  # a state folder that the answer does not name
    node.start_agent(f"--state-dir={elsewhere}")
    wait_until("registered again", 30, lambda: node.allocatable() > 0)
    node.kill_container("before")
    wait_until("a restart", 30, lambda: node.restarts("before") >= 1 and node.phase("before") == "Running")
    assert node.said("a container that another plugin gave its devices")
    node.delete("before")
    node.again()


@pytest.mark.parametrize("when", ["before the kubelet", "allocated", "started", "patch fails"])
def test_the_agent_is_killed_at_every_step(node, when):
    a, _ = node.uuids()
    manifest = node.bind(Pod.one("steps", hold(mib=1), restart="Always"), [[(a, 1234, 0)]])
    if when == "before the kubelet":
        node.again(signo=signal.SIGKILL)
        node.run(manifest)
    elif when == "allocated":
        node.knows(None)
        node.run(manifest)
        wait_until("Allocate", 10, lambda: manifest["metadata"]["uid"] in
                   (node.plugin_dir() / "kubelet_internal_checkpoint").read_text())
        node.again(signo=signal.SIGKILL)
    elif when == "started":
        node.knows(None)
        node.run(manifest)
        node.wait_running(["steps"], seconds=20)
        node.again(signo=signal.SIGKILL)
    else:
        node.api.faults.clear()
        node.api.fault(status(500), times=50, when=lambda h: h.command == "PATCH" and h.path.endswith("/pods/steps"))
        node.knows(None)
        node.run(manifest)
        node.wait_running(["steps"], seconds=20)
        node.stop_agent(signal.SIGKILL)
        node.api.faults.clear()
        node.start_agent()
        wait_until("registered again", 30, lambda: node.allocatable() > 0)
    node.wait_running(["steps"], seconds=30)
    check(node, "steps", [(a, 1234)])
    node.wait_finished("steps", seconds=30)
    node.kill_container("steps")
    wait_until("a restart", 30, lambda: node.restarts("steps") >= 1)
    check(node, "steps", [(a, 1234)])


def test_nothing_is_left_behind(node):
    a, _ = node.uuids()
    node.run(node.knows(node.bind(Pod.one("gone", hold(mib=1)), [[(a, 640, 0)]])))
    node.wait_running(["gone"], seconds=20)
    number = claim_of(node, "gone")["number"]
    node.delete("gone")
    wait_until("claim and folder go", 40, lambda: not claims_of(node, "gone") and not (node.state / "alloc" / number).exists())
