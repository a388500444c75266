"""/preempt on the running scheduler, as kube-scheduler calls it: where no victim is named, and where it has one of its own."""
import json

import pytest

from sched_peer import gpu, pod, wait_until


def asked(scheduler, preemptor, victims):
    """{node: UIDs}; victims: the same of kube-scheduler."""
    body = {"Pod": preemptor, "NodeNameToVictims": None, "NodeNameToMetaVictims": {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for node, uids in victims.items()}}
    status, _, answer = scheduler.ask("POST", "/preempt", json.dumps(body).encode())
    assert status == 200, answer
    return {node: [p["UID"] for p in v["Pods"]] for node, v in json.loads(answer)["NodeNameToMetaVictims"].items()}


@pytest.fixture
def full(scheduler, cluster):
    for name in ("n1", "n2", "n3"):
        cluster.node(name)
    cluster.runs("batch", "n1", 30000, priority=-10)
    cluster.runs("web", "n1", 10000, priority=1000)
    cluster.runs("db", "n2", 40000, priority=5000)
    cluster.runs("one", "n3", 20000, priority=0)
    cluster.runs("other", "n3", 20000, priority=0)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    return scheduler


def test_who_must_go_and_the_pod_gets_in(full, cluster):
    urgent = pod("urgent", **gpu(25000))
    urgent["spec"]["priority"] = 2000
    refused = full.filter(urgent, ["n1", "n2", "n3"])
    assert set(refused["FailedNodes"]) == {"n1", "n2", "n3"} and not refused["FailedAndUnresolvableNodes"]
    got = asked(full, urgent, {"n1": [], "n2": [], "n3": [], "gone": []})
    assert {n: sorted(v) for n, v in got.items()} == {"n1": ["uid-batch"], "n3": ["uid-one", "uid-other"]}
    # It was a question: all is held as before.
    assert full.filter(urgent, ["n1", "n2", "n3"])["NodeNames"] is None
    # kube-scheduler evicts, and asks again.
    cluster.api.delete("pods", "default", "batch")
    wait_until("the room", 30, lambda: full.filter(urgent, ["n1"])["NodeNames"] == ["n1"])


def test_beside_victims_of_its_own(full):
    urgent = pod("urgent", **gpu(25000))
    urgent["spec"]["priority"] = 2000
    assert asked(full, urgent, {"n1": ["uid-of-a-pod-without-cards"], "n2": ["uid-x"]}) == {
        "n1": ["uid-of-a-pod-without-cards", "uid-batch"]}
    assert asked(full, urgent, {"n1": ["uid-batch"]}) == {"n1": ["uid-batch"]}


def test_what_is_no_request(full):
    status, _, answer = full.ask("POST", "/preempt", b'{"Pod": 1}')
    assert (status, answer) == (400, b"extender args missing pod\n")
    assert full.ask("GET", "/preempt")[0] == 405


def test_not_before_the_cluster_is_known(scheduler):
    scheduler.start()
    assert scheduler.ask("POST", "/preempt", b"{}")[0] == 503
