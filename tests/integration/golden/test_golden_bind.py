"""Each Bind that HAMi's scheduler answered, and each raw request, asked of the running program: bound or refused as there,
the same locks on the nodes afterwards, the same status and answer, or the difference is listed. Cards are wide and pods
small here: who fits where is test_golden_filter's. The locks that HAMi left are what the later lines build on."""
import json
import re
import time

import pytest

from golden_cluster import asks, unlisted
from golden_peer import recording
from sched_peer import Cluster, Scheduler

LOCK = "hami.io/mutex.lock"
UNLOCKED_MEANWHILE = "c926", 10  # it waited, and the lock was taken away: no line says so


def small(pod):
    """The same containers ask, each for little; memory out of range is none to HAMi (S26)."""
    def container(c):
        gpu = asks({"spec": {"containers": [c]}}) and not c["resources"]["limits"].get("nvidia.com/gpumem", "").endswith("Gi")
        return {**c, "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"} if gpu else {}}}
    spec = {kind: [container(c) for c in containers] for kind, containers in pod["spec"].items()}
    return {"metadata": {k: pod["metadata"][k] for k in ("name", "namespace", "uid")}, "spec": spec, "status": {"phase": "Pending"}}


def outcome(error):
    return "bound" if not error else "contention" if error.endswith(": node lock contention") else "refused"


def without_time(lock):
    return re.sub(r"^\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)", "<time>", lock)


class Replay:
    def __init__(self, scheduler, cluster):
        self.scheduler, self.api = scheduler, cluster.api
        self.connection = scheduler.connect()
        self.nodes, self.namespace, self.promised = [], None, {}

    def line(self, line):
        """(HAMi's, ours), or None."""
        return getattr(self, line["action"].replace("-", "_"), lambda _: None)(line)

    def cluster(self, line):
        self.nodes, self.namespace, self.promised = [n["name"] for n in line["nodes"]], line["cluster"], {}

    def stored(self, name):
        return self.api.objects.get(("pods", self.namespace, name))

    def filter(self, line):
        pod = small(line["pod"])
        if self.stored(pod["metadata"]["name"]) is None:
            self.api.put_tree("pods", self.namespace, pod)
        self.promised[pod["metadata"]["name"]] = (line["answer"]["names"] or [None])[0]

    filter_again = filter

    def post(self, path, tree):
        status, _, answer = self.scheduler.ask("POST", path, json.dumps(tree).encode(), on=self.connection)
        assert status == 200, answer
        return json.loads(answer)

    def bind(self, line):
        pod, node = self.stored(line["pod_name"]), line["node"]
        if pod is not None:
            named = node if node in self.nodes else self.promised[line["pod_name"]]
            answer = self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": [named]})
            assert answer["NodeNames"] == [named], answer
        if (line["cluster"], line["step"]) == UNLOCKED_MEANWHILE:
            self.set_lock({"node": node})
        error = self.post("/bind", {"PodName": line["pod_name"], "PodNamespace": self.namespace, "PodUID": line["uid"],
                                    "Node": node})["Error"]
        ours = {n: self.lock_of(n) for n in self.nodes if self.lock_of(n) is not None}
        theirs = {n: without_time(v) for n, v in line["locks"].items()}
        for n in ours | theirs:
            if ours.get(n) != theirs.get(n):
                self.set_lock({"node": n, "value": theirs.get(n, "").replace("<time>", "NOW") or None})
        if line["error"] and not error:
            self.api.delete("pods", self.namespace, line["pod_name"])
            self.api.put_tree("pods", self.namespace, pod)
        return {"outcome": outcome(line["error"]), "locks": theirs}, {"outcome": outcome(error), "locks": ours}

    def lock_of(self, node):
        lock = self.api.objects["nodes", None, node]["metadata"]["annotations"].get(LOCK)
        return lock if lock is None else without_time(lock)

    def status(self, line):
        if "phase" in line["status"] and self.stored(line["pod_name"]):
            self.api.edit("pods", self.namespace, line["pod_name"], status={"phase": line["status"]["phase"]})

    def delete(self, line):
        if self.stored(line["pod_name"]):
            self.api.delete("pods", self.namespace, line["pod_name"])

    def set_lock(self, line):
        if line["node"] is None:
            return
        value = line.get("value")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.api.edit("nodes", None, line["node"], metadata={"annotations": {LOCK: value and value.replace("NOW", now)}})

    unlock = plugin_done = set_lock

    def http(self, line):
        body, path = line["body"], line["path"]
        if line.get("note", "").endswith("20,000 names"):
            pod = {"metadata": {"name": "many", "namespace": self.namespace, "uid": "many"}, "spec": {"containers": [
                {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
            body = {"Pod": pod, "Nodes": None, "NodeNames": [f"node-{i:054}" for i in range(20000)]}
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
        sock = self.scheduler.connect()
        status, headers, answer = self.scheduler.ask(line["method"], path, text.encode(), on=sock) \
            if line["method"] != "HEAD" else head(sock, path)
        sock.close()
        ours = {"status": status, "answer": answer.decode(), "headers": {k: headers[k.lower()] for k in ("Allow", "Location")
                                                                              if k.lower() in headers}}
        theirs = {"status": line["http_status"], "answer": line["response"], "headers": line["headers"]}
        if isinstance(line["response"], dict):
            ours["answer"] = json.loads(ours["answer"])
            failed = ours["answer"].get("FailedAndUnresolvableNodes") or {}
            if len(failed) == 20000:
                ours["answer"]["FailedAndUnresolvableNodes"] = f"20000 of {failed.popitem()[1]}"
        return theirs, ours


def head(sock, path):
    """No body follows, whatever the length says."""
    sock.sendall(f"HEAD {path} HTTP/1.1\r\nHost: scheduler\r\nConnection: close\r\n\r\n".encode())
    lines = sock.makefile("rb").read().decode().split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, v in (ln.split(": ", 1) for ln in lines[1:] if ": " in ln)}, b""


@pytest.fixture(scope="module")
def replayed(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bind")
    cluster, scheduler, lines = Cluster(folder), Scheduler(build, folder), recording("filter.jsonl.gz")
    for node in (n for line in lines if line["action"] == "cluster" for n in line["nodes"]):
        cluster.node(node["name"], memory=1000000, slots=1000)
    try:
        scheduler.start(f"--kubeconfig={cluster.kubeconfig}", "--node-lock-retry-timeout=100ms").wait_ready()
        replay = Replay(scheduler, cluster)
        pairs = [(line, replay.line(line)) for line in lines if line["action"] != "config"]
    finally:
        scheduler.end()
        cluster.api.down()
    return [(line, *pair) for line, pair in pairs if pair]


@pytest.mark.parametrize("action, count", [("bind", 1478), ("http", 33)])
def test_alike_or_listed(replayed, action, count):
    triples = [r for r in replayed if r[0]["action"] == action]
    assert len(triples) == count
    assert not unlisted(action, triples)
