"""hami-device-plugin in mode hami: what it keeps on its Node, whatever happens to the API server and to the Node."""
import json
import pathlib
import re
import sys
import time
import urllib.request

import pytest

from kubelet_peer import UUIDS, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube"))
from api_server import ApiServer, silence, status  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402

REGISTER, SCORE, HANDSHAKE = "hami.io/node-nvidia-register", "hami.io/node-nvidia-score", "hami.io/node-handshake"
NODE = "node-1"


def card(i, **more):
    return {"id": UUIDS[i], **({"index": i} if i else {}), "count": 10, "devmem": 16384, "devcore": 100,
            "type": "NVIDIA-unknown GPU", "mode": "hami-core", **more}


def registered(*healthy):
    """The annotation's value with late binding; healthy: for each card."""
    return [card(i, **({"health": True} if ok else {}), custominfo={"binding": "late"}) for i, ok in enumerate(healthy)]


class Cluster:
    def __init__(self, folder):
        self.api = ApiServer()
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{self.api.port}")

    def make_node(self, **annotations):
        return self.api.put("nodes", None, NODE, **annotations)

    def tell_runtime(self, container, kubelet="v1.34.4"):
        """As the kubelet does when it or the runtime is another."""
        info = {"kubeletVersion": kubelet, "containerRuntimeVersion": container}
        if not self.api.objects.get(("nodes", None, NODE)):
            self.make_node()
        self.api.edit("nodes", None, NODE, status={"nodeInfo": info})

    def annotations(self):
        node = self.api.objects.get(("nodes", None, NODE))
        return node["metadata"]["annotations"] if node else {}

    def register(self):
        text = self.annotations().get(REGISTER)
        return json.loads(text) if text and text[0] == "[" else text

    def patches(self):
        return self.api.seen(method="PATCH", path=f"/api/v1/nodes/{NODE}")

    def wait_register(self, want, seconds=10):
        wait_until(f"{want} on the Node", seconds, lambda: self.register() == want)


@pytest.fixture
def cluster(short_tmp):
    it = Cluster(short_tmp)
    yield it
    it.api.down()


@pytest.fixture
def start(cluster, kubelet, agent):
    """Kubelet and agent in mode hami; returns the agent, registered."""
    kubelet.resource = "nvidia.com/gpu"

    def run(*flags, wait=True, env=(), binding="late"):
        if kubelet.server is None:
            kubelet.start()
        agent.start("--mode=hami", f"--binding={binding}", f"--kubeconfig={cluster.kubeconfig}", f"--node-name={NODE}",
                    "--metrics-bind-address=127.0.0.1:0", *flags,
                    env=env)
        if wait:
            kubelet.wait_registered()
            kubelet.devices()
        return agent
    return run


def watches_nodes(h):
    return h.watching and h.request_seen.path == "/api/v1/nodes"


def settled(cluster, seconds=1.5):
    """The patches so far, none of which came in the last moments."""
    before = len(cluster.patches())
    time.sleep(seconds)
    assert len(cluster.patches()) == before, [p.body for p in cluster.patches()[before:]]
    return before


def metrics(agent):
    """The page's series of publishing: {(family's last words, label): value}"""
    port = re.search(r"serving metrics address=\S+ port=(\d+)", agent.log()).group(1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    return {(name, label): float(value) for name, label, value in
            re.findall(r'^hami_agent_publish_(\w+?)(?:\{\w+="(\w+)"\})? ([0-9.]+)$', page, re.M)}


def test_written_once_and_left_alone(cluster, start, kubelet):
    node = cluster.make_node(**{HANDSHAKE: "Requesting_2026-08-21 06:20:39", "other": "kept"})
    agent = start()
    cluster.wait_register(registered(True, True))
    assert settled(cluster) == 1
    patch = json.loads(cluster.patches()[0].body)
    assert patch == {"metadata": {"uid": node["metadata"]["uid"], "annotations": {REGISTER: cluster.annotations()[REGISTER]}}}
    assert cluster.annotations()[HANDSHAKE].startswith("Requesting_") and cluster.annotations()["other"] == "kept"
    cluster.api.edit("nodes", None, NODE, metadata={"annotations": {"other": "changed"}})  # the Node's own life
    assert settled(cluster) == 1
    agent.stop()
    assert cluster.register() == registered(True, True), "nothing is taken away at the end"
    start()
    assert settled(cluster) == 1, "the next run finds it as it should be"


def test_the_kubelets_list_is_hamis(cluster, start, kubelet):
    cluster.make_node()
    kubelet.start()
    agent = start("--device-split-count=3", wait=False)
    kubelet.wait_registered()
    assert [d.ID for d in kubelet.devices()] == [f"{u}-{i}" for u in UUIDS[:2] for i in range(3)]
    assert all(d.health == "Healthy" and not d.topology.nodes for d in kubelet.healthy)
    assert (kubelet.folder / "nvidia-gpu.sock").is_socket()
    wait_until("the annotation", 10, lambda: [c["count"] for c in cluster.register() or []] == [3, 3])
    agent.set_nvml(lost=0)
    assert [(d.ID, d.health) for d in kubelet.devices(8)] == \
        [(f"{u}-{i}", h) for u, h in zip(UUIDS, ("Unhealthy", "Healthy")) for i in range(3)], "in the same order"


def test_a_sick_card_is_in_the_annotation_as_soon_as_in_the_list(cluster, start, kubelet, agent):
    cluster.make_node()
    start("--health-recovery-seconds=1")
    cluster.wait_register(registered(True, True))
    for lost, want in ((1, registered(True, False)), (-1, registered(True, True))):
        agent.set_nvml(lost=lost)
        kubelet.devices(10)
        cluster.wait_register(want, 2)
    assert settled(cluster) == 3


def test_the_api_server_comes_late_and_goes(cluster, start, kubelet, agent):
    cluster.api.down()
    start()  # registered with the kubelet all the same
    time.sleep(4)
    assert agent.process.poll() is None
    assert kubelet.plugin.allocate([f"{UUIDS[0]}-0"])
    cluster.make_node()
    cluster.api.up()
    cluster.wait_register(registered(True, True), 20)
    cluster.api.down()
    agent.set_nvml(lost=0)
    kubelet.devices(10)
    time.sleep(4)
    cluster.api.up()
    cluster.wait_register(registered(False, True), 40)
    assert settled(cluster) == 2


def test_an_api_server_that_says_nothing_holds_nobody_up(cluster, start, kubelet):
    cluster.make_node()
    cluster.api.fault(silence, times=1000)
    start()
    took = []
    for i in range(20):
        begun = time.monotonic()
        kubelet.plugin.allocate([f"{UUIDS[0]}-{i % 10}"])
        took.append(time.monotonic() - begun)
    assert sorted(took)[10] < 0.1


def test_what_others_change_is_put_right(cluster, start):
    cluster.make_node()
    agent = start()
    cluster.wait_register(registered(True, True))
    for changed in ({}, {REGISTER: "[]"}, {REGISTER: "GPU-1,10,16376,100,NVIDIA,0,true,0,hami-core:"}):
        cluster.make_node(**changed)
        cluster.wait_register(registered(True, True), 7)
    assert settled(cluster) == 4
    figures = metrics(agent)
    assert figures["writes_total", "changed"] == 1 and figures["writes_total", "healed"] == 3
    assert figures["passes_total", "ok"] >= 4 and figures["passes_total", "error"] == 0
    assert figures["age_seconds", ""] < 30


def test_a_fight_over_the_annotation_is_not_fought_at_full_speed(cluster, start):
    cluster.make_node()
    start()
    cluster.wait_register(registered(True, True))
    end = time.monotonic() + 4
    while time.monotonic() < end:
        if cluster.annotations().get(REGISTER) != "[]":
            cluster.make_node(**{REGISTER: "[]"})
        time.sleep(0.02)
    assert len(cluster.patches()) <= 3
    cluster.wait_register(registered(True, True), 7)


def test_a_node_made_again(cluster, start):
    first = cluster.make_node()
    start()
    cluster.wait_register(registered(True, True))
    cluster.api.delete("nodes", None, NODE)
    time.sleep(1)
    second = cluster.make_node()
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    cluster.wait_register(registered(True, True), 7)
    assert json.loads(cluster.patches()[-1].body)["metadata"]["uid"] == second["metadata"]["uid"]


def test_a_node_that_was_replaced_unseen(cluster, start):
    """The patch meets another UID: 422. The Node is asked for, and has its annotation in the next pass."""
    cluster.make_node()
    cluster.api.fault(status(403, "Forbidden"), times=1000, when=watches_nodes)  # nothing is told
    agent = start()
    cluster.wait_register(registered(True, True))
    cluster.api.delete("nodes", None, NODE, tell=False)
    cluster.make_node()
    agent.set_nvml(lost=1)
    cluster.wait_register(registered(True, False), 15)
    assert "422" in agent.log()


def test_without_the_right_to_watch(cluster, start):
    """HAMi's role: nodes get, list, update, patch."""
    cluster.make_node()
    cluster.api.fault(status(403, "Forbidden"), times=1000, when=watches_nodes)
    agent = start()
    cluster.wait_register(registered(True, True))
    agent.set_nvml(lost=1)
    cluster.wait_register(registered(True, False), 10)
    cluster.make_node()
    cluster.wait_register(registered(True, False), 45)
    assert agent.log().count("watching is not allowed") == 1


@pytest.mark.parametrize("answer", [status(409, "Conflict"), status(500), status(429, headers={"Retry-After": "1"}),
                                    status(403, "Forbidden")])
def test_a_refused_write_is_tried_again(cluster, start, answer):
    cluster.make_node()
    cluster.api.fault(answer, times=1, when=lambda h: h.command == "PATCH")
    start()
    cluster.wait_register(registered(True, True), 12)
    assert settled(cluster) == 2


def test_no_such_node(cluster, start):
    agent = start()
    wait_until("said", 10, lambda: "our Node does not exist" in agent.log())
    time.sleep(1)
    assert agent.log().count("our Node does not exist") == 1
    cluster.make_node()
    cluster.wait_register(registered(True, True), 7)


def test_who_we_are_must_be_known(cluster, agent, kubelet):
    kubelet.start()
    agent.start("--mode=hami", f"--kubeconfig={cluster.kubeconfig}", env=[("NODE_NAME", "")])
    assert agent.process.wait(timeout=5) == 1
    assert "NODE_NAME" in agent.log()


def test_the_score_is_published_when_asked_for(cluster, start):
    cluster.make_node(**{SCORE: "of an earlier plugin"})
    agent = start()
    cluster.wait_register(registered(True, True))
    assert cluster.annotations()[SCORE] == "of an earlier plugin"
    agent.stop()
    start(env=[("ENABLE_TOPOLOGY_SCORE", "true")])
    wait_until("the score", 10, lambda: cluster.annotations()[SCORE].startswith("["))
    rows = json.loads(cluster.annotations()[SCORE])
    assert [(r["uuid"], list(r["score"])) for r in rows] == [(UUIDS[0], [UUIDS[1]]), (UUIDS[1], [UUIDS[0]])]
    assert rows[0]["score"][UUIDS[1]] == rows[1]["score"][UUIDS[0]]
    assert settled(cluster) == 2
    assert list(json.loads(cluster.patches()[-1].body)["metadata"]["annotations"]) == [SCORE]


def asymmetries(cluster):
    return [o for (plural, _, _), o in cluster.api.objects.items() if plural == "events" and o["reason"] == "AsymmetricGPUP2PLink"]


def test_a_pair_that_is_linked_one_way_only_is_told(cluster, start, agent):
    """One card says that NVLinks join it to the other, which knows nothing of them."""
    def score(points):
        rows = [{"uuid": a, "score": {b: points}} for a, b in (UUIDS[:2], UUIDS[1::-1])]
        wait_until(f"{points} points", 15, lambda: json.loads(cluster.annotations().get(SCORE, "null")) == rows)
    cluster.make_node()
    agent.set_nvml(links=2, back=2)
    start(wait=False, env=[("ENABLE_TOPOLOGY_SCORE", "true")])
    score(200)
    assert not asymmetries(cluster)
    agent.set_nvml(links=2, back=0)
    score(0)
    (event,) = wait_until("the event", 10, lambda: asymmetries(cluster))
    assert event["type"] == "Warning" and event["message"].startswith("One or more GPU pairs on this node have asymmetric")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": NODE}  # as the kubelet's


def bindings(cluster):
    """What the Node's annotation says of each card's binding."""
    return [c.get("custominfo") for c in cluster.register() or []]


LATE, CLASSIC = [{"binding": "late"}] * 2, [None] * 2


def test_binding_auto_goes_by_the_runtime(cluster, start, kubelet):
    cluster.tell_runtime("containerd://1.7.27")
    agent = start(binding="auto")
    wait_until("classic", 15, lambda: bindings(cluster) == CLASSIC)
    wait_until("said", 5, lambda: "does no CDI by itself" in agent.log())
    agent.stop()
    before = agent.log().count("does no CDI by itself")
    kubelet.registered.queue.clear()
    start(binding="auto")
    assert agent.log().count("does no CDI by itself") == before + 1, "known before the API server was asked"
    assert settled(cluster) and bindings(cluster) == CLASSIC
    assert agent.log().count("decides anew") == 1
    cluster.tell_runtime("containerd://2.2.9")  # the node was upgraded
    wait_until("late", 15, lambda: bindings(cluster) == LATE)
    cluster.tell_runtime("containerd://2.2.10")
    time.sleep(1)
    assert agent.log().count("decides anew") == 2 and bindings(cluster) == LATE


def test_binding_auto_with_a_runtime_that_does_cdi(cluster, start, kubelet):
    cluster.tell_runtime("containerd://2.2.9")
    agent = start(binding="auto")
    wait_until("late", 15, lambda: bindings(cluster) == LATE)
    time.sleep(0.5)
    assert "decides anew" not in agent.log()
    assert not kubelet.plugin.allocate([f"{UUIDS[0]}-0"])[0].annotations
    cluster.tell_runtime("containerd://2.2.9", kubelet="v1.28.15")  # drops CDI devices of the answer
    wait_until("made anew", 15, lambda: "decides anew" in agent.log())
    kubelet.wait_registered()
    kubelet.devices()
    (annotation,) = kubelet.plugin.allocate([f"{UUIDS[0]}-0"])[0].annotations
    assert annotation.key.startswith("cdi.k8s.io/") and annotation.value.startswith("hami.io/vgpu=v.")


def test_late_binding_that_cannot_work_is_said_loudly(cluster, start):
    cluster.tell_runtime("docker://29.1.0")
    agent = start()
    wait_until("said", 10, lambda: "LATE BINDING NEEDS CDI" in agent.log())
    wait_until("the event", 10, lambda: any(o["reason"] == "NoCDI" for o in cluster.api.all("events")))
    cluster.wait_register(registered(True, True))
