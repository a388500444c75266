"""Late binding under HAMi's resources when things go wrong: API server, agent, kubelet and files; the node's lock; crowds of
pods. What a container sees is its own all the same."""
import json
import os
import random
import signal
import time

import pytest

pytest.register_assert_rewrite("node.hami", "node.late")

from node.base import Container, Pod, wait_until  # noqa: E402
from node.fixtures import clean  # noqa: E402,F401  (pytest runs it)
from node.hami import LOCK, TO_ALLOCATE  # noqa: E402
from node.late import check, claim_of, claims_of, late_node, lock_for, metric, restart_agent  # noqa: E402
from node.scenarios import PROBE, hold  # noqa: E402

from kube.api_server import status  # noqa: E402


@pytest.fixture(scope="module")
def node():
    yield from late_node()


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


@pytest.mark.parametrize("folder", ["claims", "alloc", "cdi"])
def test_what_cannot_be_written_starts_later(node, folder):
    """A disk that is full, a folder that is gone: no container starts without its files, no pod is lost for it, and nobody
    is told that it has failed."""
    name, (a, _) = f"full-{folder}", node.uuids()
    place = node.cdi_dir() if folder == "cdi" else node.state / folder
    aside = place.with_name("aside")
    place.rename(aside)
    place.write_text("")  # neither can anything be made in it
    try:
        node.place(Pod.one(name, hold(mib=1)), [[(a, 765, 0)]])
        wait_until("it says which file", 20, lambda: str(place) in node.container(name).get("message", ""))
        # A change of any kind, which the agent is told.
        node.api.edit("pods", "default", name, metadata={"labels": {"any": "thing"}})
        node.settle()
        assert node.phase(name) == "Pending"
        assert not node.pod_patches(name)
    finally:
        place.unlink()
        aside.rename(place)
    node.wait_running([name], seconds=30)
    check(node, name, [(a, 765)])
    node.wait_finished(name)


def test_claims_of_an_earlier_version_and_of_a_later_one(node):
    """An update finds what the version before wrote; what a later one wrote is left alone and known again by the pod."""
    a, _ = node.uuids()
    for name in ("older", "newer"):
        node.place(Pod.one(name, hold(mib=1), restart="Always"), [[(a, 432, 0)]])
    node.wait_running(["older", "newer"], seconds=20)
    for name in ("older", "newer"):
        node.wait_finished(name)
        node.set_phase(name, "Running")
    first = {name: claim_of(node, name) for name in ("older", "newer")}
    node.stop_agent(signal.SIGKILL)
    path = node.state / "claims" / first["older"]["number"]
    since_2 = ("priority=", "policy=", "oversubscribe=", "uncontrolled=", "signature=")
    lines = [line for line in path.read_text().splitlines(keepends=True) if not line.startswith(since_2)]
    path.write_text("".join(lines).replace("hami-vgpu-claim 2", "hami-vgpu-claim 1").replace(str(432 << 20), str(321 << 20)))
    path = node.state / "claims" / first["newer"]["number"]
    path.write_text(path.read_text().replace("hami-vgpu-claim 2", "hami-vgpu-claim 3"))
    node.start_agent()
    for name, mib in (("older", 321), ("newer", 432)):  # the old one's claim counts, as it was read
        node.kill_container(name)
        wait_until("a restart", 30, lambda n=name: node.restarts(n) >= 1)
        check(node, name, [(a, mib)])


def test_a_checkpoint_that_cannot_be_read_leaves_the_kubelets_list(node):
    a, b = node.uuids()
    manifest = node.bind(Pod.one("torn", hold(mib=1)), [[(a, 765, 0)]])
    node.api.delete("pods", "default", "torn")  # it cannot start yet
    node.run(manifest)
    checkpoint = node.plugin_dir() / "kubelet_internal_checkpoint"
    wait_until("Allocate", 10, lambda: manifest["metadata"]["uid"] in checkpoint.read_text())
    # The kubelet may write it once more, when an earlier pod's end has come through.
    wait_until("it says so", 20, lambda: checkpoint.write_text("{torn") and "checkpoint cannot be read" in node.agent_log.read_text())
    node.api.put_tree("pods", "default", manifest)
    node.wait_running(["torn"], seconds=20)
    check(node, "torn", [(a, 765)])
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


# ---- many at once

def test_pods_bound_in_crowds_are_never_swapped(node):
    """Equal counts, different memory and cards, started in another order than bound, and told to us before, while or after
    the kubelet asks: each container sees its own. Each crowd of 18 holds 153 pairs that could be swapped; HAMI_LATE_PODS
    for more of them. Pairs, many times: test_hami_late_pairs.py."""
    cards = node.uuids()
    dice = random.Random(time.time_ns())
    done = crowd = 0
    while done < int(os.environ.get("HAMI_LATE_PODS", "180")):
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
