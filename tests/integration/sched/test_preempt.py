"""/preempt on the running scheduler, as kube-scheduler calls it: where no victim is named, and where it has one of its own."""
import json
import threading

import pytest

from api_server import reset, status
from sched_peer import gpu, held_until, pod, wait_until


def of_budgets(h):
    return h.request_seen.path == "/apis/policy/v1/poddisruptionbudgets"


def ask(scheduler, preemptor, victims):
    """The status, and the answer's body; victims: {node: UIDs} of kube-scheduler."""
    body = {"Pod": preemptor, "NodeNameToVictims": None, "NodeNameToMetaVictims": {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for node, uids in victims.items()}}
    code, _, answer = scheduler.ask("POST", "/preempt", json.dumps(body).encode())
    return code, answer


def answered(scheduler, preemptor, victims):
    """{node: (UIDs, how many violate a budget)}"""
    code, answer = ask(scheduler, preemptor, victims)
    assert code == 200, answer
    return {node: ([p["UID"] for p in v["Pods"]], v["NumPDBViolations"])
            for node, v in json.loads(answer)["NodeNameToMetaVictims"].items()}


def asked(scheduler, preemptor, victims):
    """{node: UIDs}"""
    return {node: uids for node, (uids, _) in answered(scheduler, preemptor, victims).items()}


def urgent_pod(memory=25000):
    it = pod("urgent", **gpu(memory))
    it["spec"]["priority"] = 2000
    return it


def budget(cluster, app, allowed):
    cluster.api.put_tree("poddisruptionbudgets", "default", {
        "metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"disruptionsAllowed": allowed}})


def label(cluster, name, **labels):
    cluster.api.edit("pods", "default", name, metadata={"labels": labels})


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
    wait_until("the budgets", 30, lambda: ask(scheduler, urgent_pod(), {})[0] == 200)
    return scheduler


def test_who_must_go_and_the_pod_gets_in(full, cluster):
    urgent = urgent_pod()
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
    urgent = urgent_pod()
    assert asked(full, urgent, {"n1": ["uid-of-a-pod-without-cards"], "n2": ["uid-x"]}) == {
        "n1": ["uid-of-a-pod-without-cards", "uid-batch"]}
    assert asked(full, urgent, {"n1": ["uid-batch"]}) == {"n1": ["uid-batch"]}


def test_budgets(full, cluster):
    """The one without a budget goes; where none is without, it is counted; budgets and labels change."""
    for name in ("one", "db", "batch"):
        label(cluster, name, app=name)
    everywhere = {"n1": [], "n2": [], "n3": []}
    small, large = urgent_pod(15000), urgent_pod(35000)
    for name in ("one", "batch"):
        budget(cluster, name, 0)
    wait_until("the budgets", 30, lambda: answered(full, small, everywhere) == {
        "n1": (["uid-batch"], 1), "n3": (["uid-other"], 0)})
    got = answered(full, large, everywhere)
    assert got == {"n1": (["uid-web", "uid-batch"], 1), "n3": (["uid-one", "uid-other"], 1)}
    label(cluster, "other", app="one")
    wait_until("the label", 30, lambda: answered(full, large, {"n3": []}) == {"n3": (["uid-one", "uid-other"], 2)})
    budget(cluster, "one", 1)
    wait_until("the budget", 30, lambda: answered(full, large, {"n3": []}) == {"n3": (["uid-one", "uid-other"], 1)})
    cluster.api.delete("poddisruptionbudgets", "default", "one")
    wait_until("no budget", 30, lambda: answered(full, large, {"n3": []}) == {"n3": (["uid-one", "uid-other"], 0)})


def test_pods_are_placed_before_budgets_are_known(scheduler, cluster):
    """Only who would evict waits for them."""
    gate = threading.Event()
    cluster.node("n1")
    cluster.runs("batch", "n1", 30000, priority=-10)
    cluster.api.fault(held_until(gate), when=of_budgets)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    assert scheduler.filter(pod("small", **gpu(1000)), ["n1"])["NodeNames"] == ["n1"]
    assert ask(scheduler, urgent_pod(), {"n1": []}) == (503, b"the scheduler does not know the disruption budgets yet\n")
    gate.set()
    wait_until("the budgets", 30, lambda: ask(scheduler, urgent_pod(), {"n1": []})[0] == 200)


@pytest.mark.parametrize("action", [status(500), status(503), reset])
def test_budgets_that_cannot_be_listed_yet(scheduler, cluster, action):
    """They may protect somebody: that is no reason to do without."""
    cluster.node("n1")
    cluster.runs("batch", "n1", 30000, priority=-10)
    gate = threading.Event()
    cluster.api.fault(action, times=3, when=of_budgets)
    cluster.api.fault(held_until(gate), when=of_budgets)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    wait_until("a failure", 30, lambda: scheduler.metric("hami_scheduler_watch_failures_total") >= 1)
    assert ask(scheduler, urgent_pod(), {"n1": []}) == (503, b"the scheduler does not know the disruption budgets yet\n")
    gate.set()
    wait_until("the budgets", 30, lambda: ask(scheduler, urgent_pod(), {"n1": []})[0] == 200)


@pytest.mark.parametrize("code", [403, 404])
def test_without_the_right_to_read_budgets(scheduler, cluster, code):
    cluster.node("n1")
    cluster.runs("batch", "n1", 30000, priority=-10)
    cluster.api.fault(status(code), times=1000, when=of_budgets)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    wait_until("an answer", 30, lambda: ask(scheduler, urgent_pod(), {"n1": []})[0] == 200)
    assert answered(scheduler, urgent_pod(), {"n1": []}) == {"n1": (["uid-batch"], 0)}
    silent = 'hami_scheduler_watch_silent_seconds{object="budgets"}'
    assert silent not in scheduler.metrics() and scheduler.metric("hami_scheduler_watch_silent_seconds", object="quotas") < 60
    assert scheduler.metric("hami_scheduler_watch_failures_total") == 0


def test_what_is_no_request(full):
    status, _, answer = full.ask("POST", "/preempt", b'{"Pod": 1}')
    assert (status, answer) == (400, b"extender args missing pod\n")
    assert full.ask("GET", "/preempt")[0] == 405


def test_not_before_the_cluster_is_known(scheduler):
    scheduler.start()
    assert scheduler.ask("POST", "/preempt", b"{}")[0] == 503
