"""Several replicas: one decides at a time, and the next knows what the last one bound."""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from api_server import silence, status
from sched_peer import FAST, NOT_LEADING, Scheduler, bind_args, gpu, held_until, is_binding, pod, read_answer, slow, wait_until


class Replicas:
    def __init__(self, build, folder, cluster):
        self.build, self.folder, self.cluster, self.all = build, folder, cluster, []

    def start(self, *flags):
        n = len(self.all)
        (self.folder / f"s{n}").mkdir()
        it = Scheduler(self.build, self.folder / f"s{n}")
        self.cluster.api.put_tree("pods", "kube-system", {
            "metadata": {"name": f"s{n}", "labels": {"app.kubernetes.io/component": "hami-scheduler"}}, "spec": {}})
        it.start(f"--kubeconfig={self.cluster.kubeconfig}", f"--pod-name=s{n}", *(flags or FAST))
        self.all.append(it)
        it.wait_ready()
        return it

    def leads(self, it):
        return it.filter(pod("probe", **gpu(1)), ["n0"])["Error"] not in NOT_LEADING

    def leader(self):
        """The one that decides, when there is one."""
        def look():
            leaders = [s for s in self.all if s.process.poll() is None and self.leads(s)]
            assert len(leaders) < 2
            return leaders and leaders[0]
        return wait_until("a leader", 60, look, every=0.05)

    def role(self, n):
        with self.cluster.api.lock:
            return self.cluster.api.objects["pods", "kube-system", f"s{n}"]["metadata"]["labels"].get("hami.io/scheduler-role")


@pytest.fixture
def replicas(build, short_tmp, cluster):
    it = Replicas(build, short_tmp, cluster)
    cluster.node("n0", memory=1)
    cluster.node("n1")
    yield it
    for s in it.all:
        if s.process.poll() is None:
            s.process.send_signal(signal.SIGCONT)
        assert s.end() in (0, -signal.SIGKILL), s.log()


def place(cluster, scheduler, name, memory, node="n1"):
    """Filtered and bound; the error."""
    tree = cluster.pod(name, memory)
    answer = scheduler.filter(tree, [node])
    if answer["NodeNames"] != [node]:
        return answer["Error"] or json.dumps(answer["FailedNodes"])
    error = scheduler.bind(tree, node)
    cluster.api.edit("nodes", None, node, metadata={"annotations": {"hami.io/mutex.lock": None}})
    return error


def test_the_next_one_knows(replicas, cluster):
    for _ in range(3):
        replicas.start()
    first = replicas.leader()
    n = replicas.all.index(first)
    wait_until("the labels", 30, lambda: [replicas.role(i) == "leader" for i in range(3)] == [i == n for i in range(3)])
    other = next(s for s in replicas.all if s is not first)
    assert place(cluster, other, "x", 30000) == NOT_LEADING[0]
    assert place(cluster, first, "a", 30000) == ""
    first.end(signal.SIGKILL)
    second = replicas.leader()
    assert "CardInsufficientMemory" in place(cluster, second, "b", 30000)
    assert place(cluster, second, "c", 10000) == ""
    wait_until("the dead one's label", 30, lambda: replicas.role(n) == "follower")
    assert replicas.role(replicas.all.index(second)) == "leader"


def test_it_is_left_to_the_next(replicas):
    first, second = replicas.start(), replicas.start()
    assert replicas.leader() is first
    assert first.end() == 0
    assert replicas.leader() is second
    with replicas.cluster.api.lock:
        lease = replicas.cluster.api.objects["leases", "kube-system", "hami"]["spec"]
    written = [json.loads(r.body)["spec"] for r in replicas.cluster.api.seen(method="PATCH") if "/leases/" in r.path]
    assert [w["holderIdentity"] for w in written].count("") == 1
    assert lease["leaseTransitions"] == 1 and lease["leaseDurationSeconds"] == 3
    assert lease["holderIdentity"].startswith(socket.gethostname() + "_")


def test_one_that_was_asleep(replicas, cluster):
    first, second = replicas.start(), replicas.start()
    assert replicas.leader() is first
    tree = cluster.pod("a")
    assert first.filter(tree, ["n1"])["NodeNames"] == ["n1"]
    os.kill(first.process.pid, signal.SIGSTOP)
    wait_until("the second", 60, lambda: replicas.leads(second))
    assert place(cluster, second, "b", 30000) == ""
    os.kill(first.process.pid, signal.SIGCONT)
    assert first.bind(tree, "n1") == NOT_LEADING[0]
    assert not replicas.leads(first)


def ask_to_bind(scheduler, tree, node="n1"):
    """The connection on which the answer will come."""
    sock = scheduler.connect(60)
    body = json.dumps(bind_args(tree, node)).encode()
    sock.sendall(b"POST /bind HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return sock


def bindings(cluster, name):
    return [r for r in cluster.api.seen(method="POST") if r.path.endswith(f"/{name}/binding")]


def test_one_that_slept_over_its_binding(replicas, cluster):
    """The API server had no time, the leader fell asleep, and the next one has sold the card."""
    cluster.node("n2", late=True)  # no lock of the node stands in the way
    first, second = replicas.start(), replicas.start()
    assert replicas.leader() is first
    tree = cluster.pod("a")
    assert first.filter(tree, ["n2"])["NodeNames"] == ["n2"]
    cluster.api.fault(status(429, headers={"Retry-After": "1"}), when=is_binding)
    with ask_to_bind(first, tree, "n2") as sock:
        wait_until("the first try", 30, lambda: bindings(cluster, "a"))
        os.kill(first.process.pid, signal.SIGSTOP)
        wait_until("the second", 60, lambda: replicas.leads(second))
        assert place(cluster, second, "b", 30000, "n2") == ""
        os.kill(first.process.pid, signal.SIGCONT)
        error = json.loads(read_answer(sock)[2])["Error"]
    assert error in (NOT_LEADING[0], "this replica does not lead any more")
    time.sleep(0.5)
    assert len(bindings(cluster, "a")) == 1 and "nodeName" not in cluster.api.objects["pods", "default", "a"]["spec"]


@pytest.mark.parametrize("late, work", [(0, 4), (0.9, 2)])
def test_a_binding_does_not_outlive_its_leader(replicas, cluster, late, work):
    """Killed while a Binding is under way that takes longer than the Lease, or also gets to the API server at the last moment."""
    cluster.node("n2", late=True)
    first, second = replicas.start(), replicas.start()
    assert replicas.leader() is first
    trees = [cluster.pod(name) for name in "ab"]
    assert first.filter(trees[0], ["n2"])["NodeNames"] == ["n2"]
    cluster.api.fault(lambda h: slow(h, late, work), when=is_binding)
    with ask_to_bind(first, trees[0], "n2"):
        wait_until("the Binding", 30, lambda: bindings(cluster, "a"))
        first.end(signal.SIGKILL)
    assert replicas.leader() is second
    sold = cluster.api.objects["pods", "default", "a"]["spec"].get("nodeName")
    assert bool(second.filter(trees[1], ["n2"])["NodeNames"]) != bool(sold)
    time.sleep(max(0, bindings(cluster, "a")[0].at + 5 - time.monotonic()))
    assert cluster.api.objects["pods", "default", "a"]["spec"].get("nodeName") == sold


def test_it_is_left_when_nothing_is_on_its_way(replicas, cluster):
    """Asked to end while a Binding is under way: the next one knows it when it decides."""
    flags = [*(f for f in FAST if "duration" not in f and "deadline" not in f),
             "--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=10s"]
    first, second = replicas.start(*flags), replicas.start(*flags)
    assert replicas.leader() is first
    tree = cluster.pod("a")
    assert first.filter(tree, ["n1"])["NodeNames"] == ["n1"]
    gate = threading.Event()
    cluster.api.fault(held_until(gate), when=is_binding)
    sock = ask_to_bind(first, tree)
    sent, = wait_until("the Binding", 30, lambda: bindings(cluster, "a"))
    assert 5000 <= int(sent.query["timeout"].removesuffix("ms")) <= 10000
    first.process.send_signal(signal.SIGTERM)
    time.sleep(6)  # requests in hand have 5 s
    left = [r for r in cluster.api.seen(method="PATCH") if "/leases/" in r.path and b'"holderIdentity":""' in r.body]
    assert not left and not replicas.leads(second) and first.process.poll() is None
    gate.set()
    assert first.process.wait(30) == 0, first.log()
    assert replicas.leader() is second
    assert "CardInsufficientMemory" in place(cluster, second, "b", 30000)
    sock.close()


def test_alone_it_marks_its_pod_too(replicas, cluster):
    """A former process of it may have bound pods that the watch has not told yet."""
    it = replicas.start("--pod-namespace=kube-system")
    assert replicas.leader() is it
    with cluster.api.lock:
        meta = cluster.api.objects["pods", "kube-system", "s0"]["metadata"]
    assert meta["labels"]["hami.io/scheduler-role"] == "leader" and meta["annotations"]["hami.io/scheduler-term"]
    cluster.api.fault(silence, times=99, when=lambda h: h.request_seen.path.endswith("/pods/s1"))
    again = replicas.start("--pod-namespace=kube-system")
    time.sleep(0.3)
    assert not replicas.leads(again)


def put_lease(cluster, holder, renewed, seconds=600):
    """The kube-scheduler's, whose holder says its host."""
    cluster.api.put_tree("leases", "kube-system", {"metadata": {"name": "hami"}, "spec": {
        "holderIdentity": socket.gethostname() + holder, "leaseDurationSeconds": seconds, "renewTime": renewed}})


def test_kube_schedulers_lease(replicas, cluster):
    """HAMi's way: the kube-scheduler of our own pod holds it."""
    put_lease(cluster, "0_x", "1", 2)
    it = replicas.start("--leader-elect", "--leader-elect-resource-name=hami", "--pod-namespace=kube-system")
    time.sleep(0.3)
    assert not replicas.leads(it)
    put_lease(cluster, "_x", "2")
    wait_until("ours", 30, lambda: replicas.leads(it))
    assert place(cluster, it, "a", 30000) == ""
    put_lease(cluster, "0_y", "3")
    wait_until("another's", 30, lambda: not replicas.leads(it))
    assert place(cluster, it, "b", 1) == NOT_LEADING[0]
    assert [r for r in cluster.api.requests if "/leases" in r.path and r.method != "GET"] == []


def test_a_restart_beside_the_same_kube_scheduler(replicas, cluster):
    """Killed with a Binding under way; the kube-scheduler of the pod keeps its Lease, and the next process finds it as ours."""
    def renew():
        n = 0
        while not over.wait(0.3):
            n += 1
            put_lease(cluster, "_x", str(n), 3)

    over = threading.Event()
    flags = [f for f in FAST if f != "--leader-elect-by=lease"]
    cluster.node("n2", late=True)
    first = replicas.start(*flags)
    threading.Thread(target=renew, daemon=True).start()
    assert replicas.leader() is first
    trees = [cluster.pod(name) for name in "ab"]
    assert first.filter(trees[0], ["n2"])["NodeNames"] == ["n2"]
    cluster.api.fault(lambda h: slow(h, 0.9, 0.9), when=is_binding)
    with ask_to_bind(first, trees[0], "n2"):
        wait_until("the Binding", 30, lambda: bindings(cluster, "a"))
        first.end(signal.SIGKILL)
    second = replicas.start(*flags)
    assert replicas.leader() is second
    sold = second.filter(trees[1], ["n2"])["NodeNames"]
    time.sleep(max(0, bindings(cluster, "a")[0].at + 4 - time.monotonic()))
    over.set()
    assert cluster.api.objects["pods", "default", "a"]["spec"].get("nodeName") == "n2" and not sold


def test_alone_a_former_process_is_waited_for(replicas, cluster):
    """Its pod bears the mark of one that led before the container was started again."""
    cluster.api.fault(lambda h: h.json(200, {**cluster.api.objects["pods", "kube-system", "s0"], "metadata": {
        "name": "s0", "namespace": "kube-system", "uid": "u", "annotations": {"hami.io/scheduler-term": "former"}}}),
        times=9, when=lambda h: h.command == "GET" and h.request_seen.path.endswith("/pods/s0"))
    it = replicas.start("--pod-namespace=kube-system")
    time.sleep(1.5)
    assert not replicas.leads(it) and "a process led here before" in it.log()
    assert not [r for r in cluster.api.seen(method="PATCH") if r.path.endswith("/pods/s0")]


def test_a_key_that_comes_later_here(replicas, cluster, short_tmp):
    """A Secret's volume changes up to a minute apart: who does not know the key yet doubts, and looks again when it comes."""
    first, second = short_tmp / "keys-0", short_tmp / "keys-1"
    first.mkdir()
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(first / "2026-10")], check=True)
    shutil.copytree(first, second)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(first / "2026-11")], check=True)
    leader = replicas.start(*FAST, f"--signature-keys={first}")
    follower = replicas.start(*FAST, f"--signature-keys={second}")
    assert replicas.leader() is leader
    assert place(cluster, leader, "a", 1000) == ""
    wait_until("it is doubted", 30, lambda: follower.metric("hami_scheduler_doubted_pods") == 1)
    shutil.copy(first / "2026-11", second)
    wait_until("it is believed", 30, lambda: follower.metric("hami_scheduler_doubted_pods") == 0)
    assert follower.metric("hami_scheduler_holding_pods") == 1
