"""The scheduler on the real cluster: deploy/examples' scheduler.yaml, admission.yaml and hami.yaml, placements signed. From
a pod that only says what it wants to what a program sees inside its container."""
import collections
import contextlib
import os
import shutil
import signal
import tempfile

import pytest

from node.base import MIB, Pod, wait_until
from node.hami import GPU
from node.hami_real import PODS, serve_hami
from node.late import claims
from node.many import CARD_MIB as CARD_OF_MANY, SLOTS, node_with_cards, pod_with_cards, recount, shares_of
from node.scenarios import PROBE, SHELL, probe_json
from node.scheduled import KEY, ScheduledNode

CARD_MIB = 40960
SHOW = SHELL + [f"{PROBE} info; exec sleep 1000"]


@pytest.fixture(scope="module")
def node():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    folder = tempfile.mkdtemp(prefix="hami-sc-")
    it = ScheduledNode(folder, card_file="a100x8-nvlink.yaml")
    try:
        serve_hami(it, 8)
        it.start_scheduler()
        it.install_admission("admission.yaml", lambda: becomes_ours(it))
        it.start_kube_scheduler()
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def clean(node):
    yield
    node.delete_all()


def wanted(node, name, gpu, mib=None, cores=None, percent=None):
    """A pod as its author writes it: no scheduler, no annotation."""
    tree = node.manifest(Pod.one(name, SHOW))
    del tree["spec"]["schedulerName"]
    amounts = {GPU: gpu, "nvidia.com/gpumem": mib, "nvidia.com/gpucores": cores, "nvidia.com/gpumem-percentage": percent}
    tree["spec"]["containers"][0]["resources"] = {"limits": {k: v for k, v in amounts.items() if v is not None}}
    return tree


def becomes_ours(node):
    pod = node.api("POST", f"{PODS}?dryRun=All", wanted(node, "probe", 1, 1000), want=(200, 201, 500))
    return pod.get("spec", {}).get("schedulerName") == "hami-scheduler"


def submit(node, name, *amounts, **more):
    node.pods.add(name)
    node.api("POST", PODS, wanted(node, name, *amounts, **more))


def inside(node, name):
    """[(uuid, MiB)] as the program in the container sees its cards."""
    wait_until(f"{name} wrote", 60, lambda: "{" in node.output(name), every=0.1)
    return [(d["uuid"], d["total"] // MIB) for d in probe_json(node.output(name))["devices"]]


# Forty pods: {name: (what it asks for, cards, MiB of each)}. Equal ones are told apart by nothing but their signature.
FORTY = {**{f"same{i}": ((1, 3000, 10), 1, 3000) for i in range(16)},
         **{f"own{i}": ((1, 1000 + 97 * i), 1, 1000 + 97 * i) for i in range(16)},
         **{f"two{i}": ((2, 1500 + i, 5), 2, 1500 + i) for i in range(4)},
         **{f"part{i}": ((1, None, 5, 10), 1, CARD_MIB // 10) for i in range(4)}}


def test_forty_pods_and_those_who_wait(node):
    before = len(node.requests())
    for name, (amounts, _, _) in FORTY.items():
        submit(node, name, *amounts)
    node.wait_phases(FORTY, "Running", seconds=120)
    asked = collections.Counter(node.requests()[before:])
    assert asked == {("create", "pods/binding"): len(FORTY)}, "one call a pod, and nothing else"

    sold, accepted = collections.Counter(), {c["pod_name"]: c["signature"] for c in claims(node)}
    for name, (_, cards, mib) in FORTY.items():
        given = node.given(name)
        assert [m for _, m in given] == [mib] * cards and len({u for u, _ in given}) == cards, name
        assert accepted[name].startswith(f"v1.{KEY}.") and accepted[name] == node.annotations(name)["hami.io/vgpu-signature"], name
        assert sorted(inside(node, name)) == sorted(given), name
        for uuid, m in given:
            sold[uuid] += m
    assert set(sold) == set(node.uuids()) and max(sold.values()) <= CARD_MIB
    for name in FORTY:
        node.wait_finished(name)

    # No card has so much left (a pod holds 1000 MiB at least, and 621 are the driver's): they wait, and say why in HAMi's words.
    large = {f"large{i}": CARD_MIB - 900 for i in range(3)}
    for name, mib in large.items():
        submit(node, name, 1, mib)
    for name in large:
        wait_until(f"{name}: kube-scheduler's event and ours", 60,
                   lambda n=name: len([m for m in node.told(n) if "CardInsufficientMemory" in m]) >= 2, every=0.2)
        assert any("0/1 nodes are available: 1 8/8 CardInsufficientMemory" in m for m in node.told(name)), node.told(name)
    assert all(node.phases()[name] == "Pending" for name in large)
    node.delete(*FORTY)
    node.wait_phases(large, "Running")
    for name, mib in large.items():
        assert inside(node, name) == node.given(name) and [m for _, m in node.given(name)] == [mib]
    assert len({node.given(name)[0][0] for name in large}) == len(large), "a card each"


@contextlib.contextmanager
def more_nodes(node, trees):
    """That no kubelet keeps: pods are bound there, and that is all."""
    for tree in trees:
        node.api("POST", "/api/v1/nodes", tree)
    yield
    node.delete_all()
    for tree in trees:
        node.api("DELETE", f"/api/v1/nodes/{tree['metadata']['name']}", want=(200, 404))


@pytest.fixture
def crowd(node):
    """150 nodes without a card, which to kube-scheduler are as good as the one that has some."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    with more_nodes(node, [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"bare{i}"},
                            "status": {"capacity": room, "allocatable": room}} for i in range(150)]):
        yield


def test_cards_are_found_among_nodes_without(node, crowd):
    """By itself kube-scheduler would ask about 100 of the 151, now with and now without the one that matters."""
    names = [f"found{i}" for i in range(8)]
    for name in names:
        tree = wanted(node, name, 1, 1000)
        tree["spec"]["tolerations"] = [{"operator": "Exists"}]
        node.pods.add(name)
        node.api("POST", PODS, tree)
    node.wait_phases(names, "Running")
    assert [m for name in names for m in node.told(name) if "nodes are available" in m] == []


@pytest.fixture
def thousand(node):
    """Nodes with eight cards each."""
    with more_nodes(node, [node_with_cards(f"full{i:03d}", crowd="yes") for i in range(1000)]):
        yield


# Of each sort a quarter: (MiB, cards). No two of the first have room on one card.
SORTS = [(30000, 1), (9000, 1), (20000, 2), (1000, 1)]


def test_a_thousand_nodes_and_a_scheduler_that_is_killed(node, thousand):
    names = [f"many{i:03d}" for i in range(200)]
    before, asked = len(node.audited()), {name: SORTS[i % 4] for i, name in enumerate(names)}

    def submit_some(some):
        for name in some:
            node.pods.add(name)
            node.api("POST", PODS, pod_with_cards(name, *asked[name], nodeSelector={"crowd": "yes"}))

    def bound():
        return [p for p in node.api("GET", PODS)["items"] if p["metadata"]["name"] in asked and p["spec"].get("nodeName")]

    submit_some(names[:100])
    wait_until("some are bound", 180, lambda: len(bound()) >= 40)
    node.stop("hami-scheduler", signal.SIGKILL)
    node.start_scheduler()
    submit_some(names[100:])
    wait_until("200 pods are bound", 180, lambda: len(bound()) == len(names), every=0.5)

    pods = bound()
    for pod in pods:
        name, shares = pod["metadata"]["name"], shares_of(pod)
        mib, cards = asked[name]
        assert [m for _, m in shares] == [mib] * cards and len({c for c, _ in shares}) == cards, name
        assert all(c.startswith(f"GPU-{pod['spec']['nodeName']}-") for c, _ in shares), name
    held = recount(pods)
    assert max(mib for mib, _ in held.values()) <= CARD_OF_MANY and max(count for _, count in held.values()) <= SLOTS

    # Of pods that the killed one had promised a node the next one may tell that they were not bound.
    writes = [a for a in node.audited()[before:] if a["verb"] not in ("get", "list") and a["objectRef"]["resource"] != "events"]
    assert {(a["verb"], a["objectRef"]["resource"], a["objectRef"].get("subresource")) for a in writes} == {("create", "pods", "binding")}
    good = [a["objectRef"]["name"] for a in writes if a["responseStatus"]["code"] == 201]
    assert len(set(good)) == len(good), "no pod is bound twice"
    # Of a Binding that was on its way when its sender was killed the API server may not say that it went well.
    assert {a["objectRef"]["name"] for a in writes} == set(names) and len(names) - len(good) <= 10


@pytest.fixture
def narrow(node):
    """A node with cards and four CPUs, and a class of pods that may evict others from it."""
    tree = node_with_cards("narrow", evict="yes")
    tree["status"] = {key: {**room, "cpu": "4"} for key, room in tree["status"].items()}
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    node.api("POST", classes, {"metadata": {"name": "urgent"}, "value": 1000})
    with more_nodes(node, [tree]):
        yield
    node.api("DELETE", f"{classes}/urgent", want=(200, 404))


def test_an_urgent_pod_evicts_who_holds_the_cards(node, narrow):
    """kube-scheduler evicts for the CPU, and would leave the cards to whom they are; asked, we name that pod, too."""
    def submit_one(name, cpu, cards, **more):
        tree = pod_with_cards(name, 30000, cards, nodeSelector={"evict": "yes"}, schedulerName="hami-scheduler", **more)
        resources = tree["spec"]["containers"][0]["resources"]
        resources["limits"] = resources["limits"] if cards else {}
        resources["requests"] = {"cpu": cpu}
        node.pods.add(name)
        node.api("POST", PODS, tree)

    def on_it():
        return {p["metadata"]["name"] for p in node.api("GET", PODS)["items"] if p["spec"].get("nodeName") == "narrow"}

    submit_one("calculates", "3", 0)
    submit_one("learns", "100m", 8)
    wait_until("both are bound", 60, lambda: on_it() == {"calculates", "learns"})
    submit_one("needed", "2", 1, priorityClassName="urgent")
    wait_until("the urgent one has taken their place", 60, lambda: on_it() == {"needed"})


@pytest.fixture
def as_pods(node):
    """The Deployment in place of our processes."""
    for name in ("hami-kube-scheduler", "hami-scheduler"):
        node.stop(name)
    node.kubectl("delete", "mutatingwebhookconfigurations", "--all")
    node.kubectl("-n", "kube-system", "delete", "lease", "hami-scheduler", "--ignore-not-found")
    try:
        node.deploy_scheduler()
        yield wait_until("one of two leads", 60, lambda: len(node.scheduler_pods()) == 2 and node.leader(), every=0.2)
    finally:
        node.delete_all()
        node.undeploy_scheduler()
        node.start_scheduler()
        node.install_admission("admission.yaml", lambda: becomes_ours(node))
        node.start_kube_scheduler()


def test_the_deployment_and_the_end_of_its_leader(node, as_pods):
    (other,) = [p for name, p in node.scheduler_pods().items() if name != as_pods]
    node.route_service(other)  # which answers admission although it does not lead
    node.install_service_admission("admission.yaml", lambda: becomes_ours(node))
    for name, mib in (("before", 3000), ("after", 5000)):
        submit(node, name, 1, mib)
        node.wait_phases([name], "Running", seconds=100)
        assert inside(node, name) == node.given(name) and [m for _, m in node.given(name)] == [mib]
        assert node.annotations(name)["hami.io/vgpu-signature"].startswith(f"v1.{KEY}.")
        if name == "before":
            node.api("DELETE", f"/api/v1/namespaces/kube-system/pods/{as_pods}", {"gracePeriodSeconds": 0})
    assert node.leader() != as_pods
