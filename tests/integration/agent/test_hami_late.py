"""Late binding under HAMi's resources, whole: hami-simkubelet, the stand-in API server, our agent, and what a program inside
the container sees. What the annotation says is what is seen; what cannot be is refused."""
import base64
import json
import random
import shutil
import signal
import subprocess
import time

import pytest

pytest.register_assert_rewrite("node.hami", "node.late")

from node.base import MIB, Container, Pod, wait_until  # noqa: E402
from node.fixtures import clean  # noqa: E402,F401  (pytest runs it)
from node.hami import ALLOCATED, PHASE, TO_ALLOCATE  # noqa: E402
from node.late import check, check_license, claim_of, claims, claims_of, events, late_node, metric, restart_agent  # noqa: E402
from node.scenarios import PROBE, SHELL, hold  # noqa: E402


@pytest.fixture(scope="module")
def node():
    yield from late_node()


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


def test_hamis_license_is_seen_inside(node):
    check_license(node, node.place)


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


def test_the_pod_s_own_environment_wins_nothing(node):
    """The spec is applied over the pod's and the image's."""
    a, b = node.uuids()
    env = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_DEVICE_MEMORY_LIMIT_0": "99999m", "CUDA_DEVICE_SM_LIMIT": "0",
           "CUDA_DISABLE_CONTROL": "true", "LD_PRELOAD": "", "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/tmp/mine.cache"}
    node.place(Pod.one("env", SHELL + [f"env; cat /etc/ld.so.preload; {PROBE} info; exec sleep 1000"], env=env), [[(b, 777, 30)]])
    node.wait_running(["env"], seconds=20)
    check(node, "env", [(b, 777)])
    lines = node.output("env").splitlines()
    assert f"NVIDIA_VISIBLE_DEVICES={b}" in lines and "NVIDIA_VISIBLE_DEVICES=all" not in lines
    assert "CUDA_DEVICE_MEMORY_LIMIT_0=99999m" not in lines
    assert "/run/hami-vgpu/libvgpu.so" in lines
    wait_until("an event that says so", 10, lambda: any("CUDA_DISABLE_CONTROL" in m for m in events(node, "env")))


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
    node.api.edit("pods", "default", "healed", metadata={"annotations": {ALLOCATED: f"{a},NVIDIA,640,0:;"}})
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


def test_keys_that_go_away_while_nobody_looks(node, signing):
    """What was signed says that there were keys. When nothing of it is left an empty folder is what it is: no protection, said."""
    a, _ = node.uuids()
    keys = node.folder / "keys"
    node.run(signing(node.bind(Pod.one("vouched", hold(mib=1), restart="Always"), [[(a, 700, 0)]])))
    node.wait_running(["vouched"], seconds=20)
    assert metric(node, "hami_agent_signature_keys") == 1
    (keys / "2026-11").unlink()
    restart_agent(node, f"--signature-keys={keys}")
    assert metric(node, "hami_agent_signature_keys") == 0
    assert "there is no key to check them with" in node.agent_log.read_text()
    node.place(Pod.one("nobodys", hold(mib=1)), [[(a, 700, 0)]])
    wait_until("refused", 15, lambda: node.annotations("nobodys")[PHASE] == "failed")
    node.kill_container("vouched")
    wait_until("started again", 30, lambda: node.restarts("vouched") >= 1 and node.phase("vouched") == "Running")
    node.delete("vouched", "nobodys")
    wait_until("nothing signed is left, of other tests either", 30, lambda: not any(c.get("signature") for c in claims(node)))
    assert "no key in the folder yet" not in node.agent_log.read_text()
    restart_agent(node, f"--signature-keys={keys}")
    # The kubelet may count the former process's devices for a moment more.
    wait_until("it says so", 15, lambda: "no key in the folder yet" in node.agent_log.read_text())
    (line,) = [line for line in node.agent_log.read_text().splitlines() if "no key in the folder yet" in line]
    assert "placements are taken unsigned" in line and " WARN " in line
    node.place(Pod.one("anybodys", hold(mib=1), restart="Always"), [[(a, 700, 0)]])
    node.wait_running(["anybodys"], seconds=20)


def test_pods_that_ran_before_the_first_key(node):
    """What --signature=warn is for: they go on, over restarts of theirs and of the agent. Required, the next start is refused."""
    a, b = node.uuids()
    keys = node.folder / "keys"
    keys.mkdir()
    (node.folder / "key").write_text(KEY)
    try:
        restart_agent(node, f"--signature-keys={keys}", "--signature=warn")
        node.place(Pod.one("early", hold(mib=1), restart="Always"), [[(b, 800, 0)]])
        node.wait_running(["early"], seconds=20)
        subprocess.run(["openssl", "pkey", "-in", node.folder / "key", "-pubout", "-out", keys / "2026-11"], check=True)
        for rounds, signo in ((1, None), (2, signal.SIGKILL)):
            if signo is not None:
                restart_agent(node, f"--signature-keys={keys}", "--signature=warn", signo=signo)
            node.kill_container("early")
            wait_until("started again", 30, lambda n=rounds: node.restarts("early") >= n and node.phase("early") == "Running")
            check(node, "early", [(b, 800)])
            assert node.annotations("early")[PHASE] == "success"
        assert metric(node, "hami_agent_unsigned_placements_total") >= 1
        restart_agent(node, f"--signature-keys={keys}")
        node.kill_container("early")
        wait_until("refused", 15, lambda: "has no signature" in node.container("early").get("message", ""))
    finally:
        restart_agent(node)
        shutil.rmtree(keys)
