"""Several replicas: one decides at a time, and the next knows what the last one bound."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from sched_peer import FAST, NOT_LEADING, Scheduler, gpu, pod, wait_until


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


def place(cluster, scheduler, name, memory):
    """Filtered and bound; the error."""
    tree = cluster.api.put_tree("pods", "default", {**pod(name, **gpu(memory)), "status": {"phase": "Pending"}})
    answer = scheduler.filter(tree, ["n1"])
    if answer["NodeNames"] != ["n1"]:
        return answer["Error"] or json.dumps(answer["FailedNodes"])
    body = json.dumps({"PodName": name, "PodNamespace": "default", "PodUID": tree["metadata"]["uid"], "Node": "n1"}).encode()
    error = json.loads(scheduler.ask("POST", "/bind", body)[2])["Error"]
    cluster.api.edit("nodes", None, "n1", metadata={"annotations": {"hami.io/mutex.lock": None}})
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
    answer = first.filter(cluster.api.put_tree("pods", "default", {**pod("a", **gpu(30000)), "status": {}}), ["n1"])
    assert answer["NodeNames"] == ["n1"]
    os.kill(first.process.pid, signal.SIGSTOP)
    wait_until("the second", 60, lambda: replicas.leads(second))
    assert place(cluster, second, "b", 30000) == ""
    os.kill(first.process.pid, signal.SIGCONT)
    body = json.dumps({"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}).encode()
    assert json.loads(first.ask("POST", "/bind", body)[2])["Error"] == NOT_LEADING[0]
    assert not replicas.leads(first)


def test_kube_schedulers_lease(replicas, cluster):
    """HAMi's way: the kube-scheduler of our own pod holds it."""
    host = socket.gethostname()

    def lease(holder, renewed, seconds=600):
        cluster.api.put_tree("leases", "kube-system", {"metadata": {"name": "hami"}, "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}})

    lease(f"{host}0_x", "1", 2)
    it = replicas.start("--leader-elect", "--leader-elect-resource-name=hami", "--pod-namespace=kube-system")
    time.sleep(0.3)
    assert not replicas.leads(it)
    lease(f"{host}_x", "2")
    wait_until("ours", 30, lambda: replicas.leads(it))
    assert place(cluster, it, "a", 30000) == ""
    lease(f"{host}0_y", "3")
    wait_until("another's", 30, lambda: not replicas.leads(it))
    assert place(cluster, it, "b", 1) == NOT_LEADING[0]
    assert [r for r in cluster.api.requests if "/leases" in r.path and r.method != "GET"] == []


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
