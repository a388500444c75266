"""/bind on the running scheduler: one write that carries what /filter promised."""
import base64
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from api_server import reset, status
from sched_peer import gpu, held_until, is_binding, pod, wait_until


@pytest.fixture
def cell(scheduler, cluster):
    """A scheduler and a cluster; pods are made there, filtered, bound."""
    class Cell:
        api, pod, bind = cluster.api, cluster.pod, scheduler.bind

        def node(self, name, late=True, **annotations):
            return cluster.node(name, late=late, **annotations)

        def start(self, *flags):
            scheduler.start(f"--kubeconfig={cluster.kubeconfig}", *flags).wait_ready()
            return self

        def filter(self, tree, *names):
            return scheduler.filter(tree, list(names))

        def stored(self, name):
            with cluster.api.lock:
                return cluster.api.objects["pods", "default", name]

        def marks(self, name):
            return self.stored(name)["metadata"]["annotations"]

        def writes(self, since=0):
            with cluster.api.lock:
                return [(r.method, r.path) for r in cluster.api.requests[since:] if r.method != "GET" and "/events" not in r.path]

        def has_room(self, memory, node):
            probe = pod("probe", **gpu(memory))
            return self.filter(probe, node)["NodeNames"] == [node]

    return Cell()


def test_one_write(cell):
    cell.node("n1")
    cell.start()
    tree = cell.pod("a", spec={"containers": [{"name": "plain"}, pod("a", **gpu(30000))["spec"]["containers"][0], {"name": "tail"}]})
    assert cell.filter(tree, "n1")["NodeNames"] == ["n1"]
    before = len(cell.api.requests)
    assert cell.bind(tree, "n1") == ""
    assert cell.writes(before) == [("POST", "/api/v1/namespaces/default/pods/a/binding")]
    marks = cell.marks("a")
    assert cell.stored("a")["spec"]["nodeName"] == "n1"
    assert marks["hami.io/vgpu-devices-allocated"] == ";GPU-n1-0,NVIDIA,30000,0:;;"
    assert marks["hami.io/vgpu-devices-to-allocate"] == marks["hami.io/vgpu-devices-allocated"]
    assert (marks["hami.io/vgpu-node"], marks["hami.io/bind-phase"]) == ("n1", "allocating")
    assert abs(int(marks["hami.io/vgpu-time"]) - time.time()) < 100
    assert marks["hami.io/bind-time"] == marks["hami.io/vgpu-time"] and "hami.io/vgpu-signature" not in marks
    # It holds until it ends, and the watch tells when it does.
    assert not cell.has_room(20000, "n1")
    cell.api.edit("pods", "default", "a", status={"phase": "Succeeded"})
    wait_until("the card is free", 30, lambda: cell.has_room(20000, "n1"))


def test_signed(cell, short_tmp):
    """By openssl's word, over the text of docs/contracts/hami-annotations.md."""
    keys = short_tmp / "keys"
    keys.mkdir()
    for name in ("2026-10", "2026-11"):
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(keys / name)], check=True)
    cell.node("n1")
    cell.node("n2")
    cell.start(f"--signature-keys={keys}")
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    assert cell.bind(tree, "n1") == ""
    marks = cell.marks("a")
    version, key, signature = marks["hami.io/vgpu-signature"].split(".")
    assert (version, key) == ("v1", "2026-11")
    (short_tmp / "sig").write_bytes(base64.urlsafe_b64decode(signature + "=="))
    (short_tmp / "text").write_text("\n".join(["hami-vgpu-v1", tree["metadata"]["uid"], "n1", marks["hami.io/vgpu-time"],
                                               marks["hami.io/vgpu-devices-allocated"], "", ""]))
    subprocess.run(["openssl", "pkeyutl", "-verify", "-inkey", str(keys / key), "-rawin", "-in", str(short_tmp / "text"),
                    "-sigfile", str(short_tmp / "sig")], check=True, capture_output=True)
    # Whoever bears hand-written annotations is counted as the most that he asks for, and named.
    cell.pod("forged", spec={**pod("forged", **gpu(35000))["spec"], "nodeName": "n2"})
    cell.api.edit("pods", "default", "forged", metadata={"annotations": {
        "hami.io/vgpu-node": "n2", "hami.io/vgpu-devices-allocated": "GPU-n2-0,NVIDIA,1,0:;"}})
    wait_until("it is counted", 30, lambda: not cell.has_room(10000, "n2"))
    event, = wait_until("the event", 30, lambda: [e for e in cell.api.all("events") if e.get("reason") == "PlacementDoubted"])
    assert "not signed by us" in event["message"] and event["involvedObject"]["name"] == "forged"


def test_without_a_key_nothing_is_placed(cell, scheduler, short_tmp):
    """A Secret that is gone or misnamed does not turn signatures off."""
    (short_tmp / "keys").mkdir()
    cell.node("n1")
    cell.pod("forged", spec={**pod("forged", **gpu(1000))["spec"], "nodeName": "n1"}, metadata={"name": "forged", "annotations": {
        "hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,1,0:;"}})
    cell.start(f"--signature-keys={short_tmp / 'keys'}")
    assert scheduler.metric("hami_scheduler_doubted_pods") == 1
    answer = cell.filter(cell.pod("a"), "n1")
    assert answer["Error"] == "--signature-keys names a folder without a key to sign with"
    assert (scheduler.metric("hami_scheduler_signs"), scheduler.metric("hami_scheduler_decides")) == (0, 0)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(short_tmp / "keys/2026-11")], check=True)
    wait_until("the key is seen", 30, lambda: cell.filter(cell.pod("b"), "n1")["NodeNames"] == ["n1"])
    assert (scheduler.metric("hami_scheduler_signs"), scheduler.metric("hami_scheduler_decides")) == (1, 1)
    assert scheduler.metric("hami_scheduler_watch_silent_seconds", object="pods") < 60
    assert scheduler.metric("hami_scheduler_doubted_pods") == 1


def test_another_pod_of_that_name(cell):
    cell.node("n1")
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    cell.api.delete("pods", "default", "a")
    again = cell.pod("a", metadata={"name": "a", "uid": "another"})
    error = cell.bind(tree, "n1")
    assert "UID in precondition" in error or "the pod is another one" in error or "gone" in error, error
    assert "nodeName" not in cell.stored("a")["spec"] and again["metadata"]["annotations"] == {}
    wait_until("rolled back", 30, lambda: cell.has_room(40000, "n1"))


@pytest.mark.parametrize("code", [403, 404, 422])
def test_a_refusal_is_rolled_back(cell, code):
    cell.node("n1")
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    cell.api.fault(status(code, "Forbidden"), when=is_binding)
    assert str(code) in cell.bind(tree, "n1")
    assert cell.has_room(40000, "n1")
    event, = wait_until("the event", 30, lambda: [e for e in cell.api.all("events") if e.get("reason") == "BindingFailed"])
    assert event["involvedObject"]["name"] == "a" and str(code) in event["message"]


def test_throttled(cell):
    cell.node("n1")
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    cell.api.fault(status(429, headers={"Retry-After": "1"}), when=is_binding)
    assert cell.bind(tree, "n1") == ""
    assert [w for w in cell.writes() if w[1].endswith("/binding")] == 2 * [("POST", "/api/v1/namespaces/default/pods/a/binding")]


def test_the_answer_is_lost(cell):
    """Bound, and the connection breaks before anybody says so."""
    cell.node("n1")
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")

    def bound_and_cut(h):
        r = h.request_seen
        with cell.api.lock:
            code, _ = cell.api.change(r, "default", "pods", "a")
        assert code == 201
        reset(h)

    cell.api.fault(bound_and_cut, when=is_binding)
    assert cell.bind(tree, "n1") == ""
    assert cell.stored("a")["spec"]["nodeName"] == "n1" and not cell.has_room(20000, "n1")


@pytest.mark.parametrize("second", [422, 429])
def test_it_leaves_once(cell, scheduler, second):
    """A kept connection breaks when the API server has the Binding and has not done it yet. Whatever is answered to another
    copy says nothing of the first."""
    cell.node("n1")
    cell.node("n2")
    cell.start()
    first = cell.pod("first")
    assert cell.filter(first, "n2")["NodeNames"] == ["n2"] and cell.bind(first, "n2") == ""  # its connection is kept
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    ports, gate, done = [], threading.Event(), threading.Event()

    def late(h):
        r, api = h.request_seen, h.server.api
        ports.append(r.connection)

        def work():
            gate.wait(60)
            with api.lock:
                api.change(r, "default", "pods", "a")
            done.set()
        threading.Thread(target=work, daemon=True).start()
        reset(h)

    cell.api.fault(late, when=is_binding)
    cell.api.fault(status(second, headers={"Retry-After": "1"}), when=is_binding)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(cell.bind, tree, "n1")
        wait_until("the second", 30, lambda: len([w for w in cell.writes() if w[1].endswith("/a/binding")]) == 2)
        assert ports[0] in [r.connection for r in cell.api.requests if r.path.endswith("/first/binding")]
        time.sleep(0.2)
        assert not cell.has_room(30000, "n1")
        gate.set()
        assert done.wait(30)
        assert (answer.result(60) == "") == (second == 429)
    wait_until("what became of it is known", 30, lambda: scheduler.metric("hami_scheduler_binds_in_hand", state="in-doubt") == 0)
    assert cell.stored("a")["spec"]["nodeName"] == "n1" and not cell.has_room(20000, "n1")


def test_nothing_is_promised(cell):
    """After a restart between /filter and /bind."""
    cell.node("n1")
    cell.start()
    tree = cell.pod("a")
    assert cell.bind(tree, "n1") == "nothing is reserved for the pod on this node: it is to be scheduled again"
    plain = cell.api.put_tree("pods", "default", {**pod("plain", cpu=1), "status": {"phase": "Pending"}})
    assert cell.bind(plain, "n1") == ""
    assert cell.stored("plain")["spec"]["nodeName"] == "n1" and cell.marks("plain") == {}


def test_ten_at_once(cell):
    for i in range(14):
        cell.node(f"n{i}")
    cell.start()
    pods = [cell.pod(f"p{i}") for i in range(14)]
    for i, tree in enumerate(pods):
        assert cell.filter(tree, f"n{i}")["NodeNames"] == [f"n{i}"]
    gate = threading.Event()
    cell.api.fault(held_until(gate), times=14, when=is_binding)
    errors = {}
    threads = [threading.Thread(target=lambda i=i: errors.update({i: cell.bind(pods[i], f"n{i}")})) for i in range(14)]
    for t in threads:
        t.start()
    wait_until("ten", 30, lambda: len([w for w in cell.writes() if w[1].endswith("/binding")]) == 10)
    time.sleep(0.3)
    assert len([w for w in cell.writes() if w[1].endswith("/binding")]) == 10
    gate.set()
    for t in threads:
        t.join(60)
    assert errors == {i: "" for i in range(14)}


LOCK = "hami.io/mutex.lock"


def test_classic_nodes_are_locked(cell):
    cell.node("n1", late=False)
    cell.start()
    a, b = cell.pod("a", 10000), cell.pod("b", 10000)
    cell.filter(a, "n1")
    cell.filter(b, "n1")
    before = len(cell.api.requests)
    assert cell.bind(a, "n1") == ""
    assert cell.writes(before) == [("PATCH", "/api/v1/nodes/n1"), ("POST", "/api/v1/namespaces/default/pods/a/binding")]
    with cell.api.lock:
        lock = cell.api.objects["nodes", None, "n1"]["metadata"]["annotations"][LOCK]
    assert lock.endswith("Z,default,a")
    # Until its agent is through, nobody else.
    assert cell.bind(b, "n1") == "node n1 has been locked within 5m0s: node lock contention"
    assert "nodeName" not in cell.stored("b")["spec"]
    cell.api.edit("nodes", None, "n1", metadata={"annotations": {LOCK: None}})
    cell.filter(b, "n1")
    assert cell.bind(b, "n1") == ""


@pytest.mark.parametrize("value", ["garbage", "yesterday,default,x", "2020-01-01T00:00:00Z,default,x", "NOW,default,gone"])
def test_stale_locks_heal(cell, value):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    cell.node("n1", late=False, **{LOCK: value.replace("NOW", now)})
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    assert cell.bind(tree, "n1") == ""


def test_the_lock_is_given_back(cell):
    cell.node("n1", late=False)
    cell.start()
    tree = cell.pod("a")
    cell.filter(tree, "n1")
    cell.api.fault(status(422, "Invalid"), when=is_binding)
    assert "422" in cell.bind(tree, "n1")

    def lock():
        with cell.api.lock:
            return cell.api.objects["nodes", None, "n1"]["metadata"]["annotations"].get(LOCK)

    wait_until("the lock is gone", 30, lambda: lock() is None)
