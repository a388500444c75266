"""Bindings a second through a real API server (etcd and kube-apiserver, no kubelet): ours, asked by twenty at once so that
ten are in flight, beside a client that posts the very same Bindings, ten in flight, and does nothing else, in turns; that
client once more while somebody watches the pods, as we do. And the pace of a real kube-scheduler that asks us, with
deploy/examples' configuration."""
import contextlib
import json
import re
import subprocess
import time

import yaml

import real_cluster  # the first: it leads to node
from figures import Figure, interleaved, median
from grpc_peers import REPO
from node.base import wait_until
from node.many import node_with_cards, pod_with_cards
from node.real import CLUSTER, in_network, script

NODES, PODS, IN_FLIGHT = 100, 1000, 10
ASKED = 2 * IN_FLIGHT  # of us: kube-scheduler has no limit of its own, and ours is always at ten then
API, EXTENDER, METRICS = "https://127.0.0.1:16443/api/v1", "127.0.0.1:19443", "127.0.0.1:19395"
PEER, WATCHED, GOAL = "a bare client with the same Bindings", "the same, and somebody watches the pods", ">= 0.8 x peer"


class Server:
    def __init__(self, context):
        self.build, self.folder, self.marks = context.build, context.folder, {}
        self.names = [f"node{i:03d}" for i in range(NODES)]
        self.keys = self.folder / "keys"
        self.keys.mkdir()
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.keys / "key"], check=True)
        script("up.sh", "--only", "etcd", "kube-apiserver")
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.send(1, [("POST", f"{API}/namespaces/default/serviceaccounts", account)])
        self.send(IN_FLIGHT, [("POST", f"{API}/nodes", node_with_cards(n)) for n in self.names])

    def send(self, in_flight, requests):
        """[(method, url, tree)]: (seconds, the answers)."""
        asked, answers = self.folder / "requests", self.folder / "answers"
        asked.write_text("".join(f"{m} {url} {json.dumps(tree, separators=(',', ':')) if tree else ''}\n" for m, url, tree in requests))
        pki = [CLUSTER / "pki" / name for name in ("ca.crt", "admin.crt", "admin.key")]
        done = subprocess.run(in_network(self.build / "tests/bind_bench", in_flight, asked, answers, *pki),
                              check=True, capture_output=True, text=True, timeout=600)
        told = json.loads(done.stdout)
        lines = answers.read_text().splitlines()
        if told["good"] != len(requests):
            raise RuntimeError(f"{told['good']} of {len(requests)} were answered well: " + next(x for x in lines if x[0] != "2")[:500])
        return told["seconds"], [json.loads(line.split(" ", 1)[1]) for line in lines]

    # --- pods -----------------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def pods(self, scheduler="nobody"):
        """New ones, as the API server has them; gone afterwards."""
        url = f"{API}/namespaces/default/pods"
        trees = [pod_with_cards(f"pod{i:04d}", 1000, schedulerName=scheduler) for i in range(PODS)]
        _, made = self.send(IN_FLIGHT, [("POST", url, tree) for tree in trees])
        try:
            yield made
        finally:
            self.send(IN_FLIGHT, [("DELETE", f"{url}/{pod['metadata']['name']}?gracePeriodSeconds=0", None) for pod in made])

    # --- who binds ------------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def process(self, name, *argv):
        with open(self.folder / f"{name}.log", "ab") as log, subprocess.Popen(in_network(*argv), stdout=log, stderr=log) as it:
            try:
                yield
            finally:
                it.terminate()
                it.wait(30)

    def read(self, url):
        """The page; None where there is none."""
        done = subprocess.run(in_network("curl", "-sf", url), check=False, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    @contextlib.contextmanager
    def ours(self):
        with self.process("hami-scheduler", self.build / "bin/hami-scheduler", f"--http_bind={EXTENDER}", f"--metrics-bind-address={METRICS}",
                          "--scheduler-name=hami-scheduler", "--shutdown-delay=0s", f"--kubeconfig={CLUSTER}/pki/admin.conf",
                          f"--signature-keys={self.keys}"):
            wait_until("hami-scheduler is ready", 60, lambda: self.read(f"http://{EXTENDER}/readyz") is not None)
            yield

    def bound(self):
        page = self.read(f"http://{METRICS}/metrics")
        return int(re.search(r'^hami_scheduler_binds_total\{result="bound"\} (\d+)', page, re.M)[1])

    @contextlib.contextmanager
    def kube_scheduler(self):
        """With the example's configuration, but for where things are, and who leads: there is one."""
        (text,) = [d["data"]["config.yaml"] for d in yaml.safe_load_all((REPO / "deploy/examples/scheduler.yaml").read_text())
                   if d["kind"] == "ConfigMap"]
        tree = {**yaml.safe_load(text), "clientConnection": {"kubeconfig": f"{CLUSTER}/pki/admin.conf"}, "leaderElection": {"leaderElect": False}}
        tree["extenders"][0].update(urlPrefix=f"http://{EXTENDER}", enableHTTPS=False)
        config = self.folder / "kube-scheduler.yaml"
        config.write_text(json.dumps(tree))
        with self.process("kube-scheduler", CLUSTER / "bin/kube-scheduler", f"--config={config}", "--bind-address=127.0.0.1", "--secure-port=20259"):
            yield

    # --- figures, Bindings a second ---------------------------------------------------------------------------------------
    def bind_ours(self):
        with self.pods() as pods, self.ours():
            _, answers = self.send(1, [("POST", f"http://{EXTENDER}/filter", {"Pod": p, "NodeNames": self.names}) for p in pods])
            seconds, told = self.send(ASKED, [("POST", f"http://{EXTENDER}/bind", {
                "PodName": p["metadata"]["name"], "PodNamespace": "default", "PodUID": p["metadata"]["uid"], "Node": a["NodeNames"][0]})
                for p, a in zip(pods, answers)])
            if any(t.get("Error") for t in told):
                raise RuntimeError(f"not bound: {told}")
            if not self.marks:
                self.remember()
        return PODS / seconds

    def remember(self):
        """What we wrote: {pod: (annotations, node)}."""
        _, (answer,) = self.send(1, [("GET", f"{API}/namespaces/default/pods", None)])
        self.marks = {p["metadata"]["name"]: (p["metadata"]["annotations"], p["spec"]["nodeName"]) for p in answer["items"]}

    def binding(self, pod):
        name = pod["metadata"]["name"]
        marks, node = self.marks[name]
        return ("POST", f"{API}/namespaces/default/pods/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": pod["metadata"]["uid"], "annotations": marks},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})

    def bind_bare(self):
        with self.pods() as pods:
            seconds, _ = self.send(IN_FLIGHT, [self.binding(p) for p in pods])
        return PODS / seconds

    def bind_watched(self):
        """What our watch costs the API server it costs here, too."""
        pki = [w for flag, name in (("--cacert", "ca.crt"), ("--cert", "admin.crt"), ("--key", "admin.key")) for w in (flag, CLUSTER / "pki" / name)]
        with self.process("watch", "curl", "-sN", "-o", "/dev/null", *pki, f"{API}/pods?watch=true"):
            return self.bind_bare()

    def bind_kube(self):
        """From a tenth of the pods to nine tenths: its start is not counted."""
        with self.pods("hami-scheduler"), self.ours(), self.kube_scheduler():
            wait_until("the first are bound", 120, lambda: self.bound() >= PODS // 10)
            first, begun = self.bound(), time.monotonic()
            wait_until("the others are bound", 120, lambda: self.bound() >= PODS - PODS // 10)
            return (self.bound() - first) / (time.monotonic() - begun)


def figures(found=None, why=None):
    found = found or {}
    value = {name: median(found[name]) if name in found else None for name in ("ours", "bare", "watched", "kube")}
    size = why or f"{IN_FLIGHT} in flight, ours asked by {ASKED} at once; {PODS} pods to {NODES} nodes"
    yield Figure("sched.binds_per_s", "1/s", value["ours"], PEER, value["bare"], GOAL, why=size)
    yield Figure("sched.binds_per_s_watched", "1/s", value["ours"], WATCHED, value["watched"], None, why=why or "what is left of it is ours")
    yield Figure("sched.kube_scheduler_binds_per_s", "1/s", value["kube"], None, None, None, why=why or "kube-scheduler's own pace, asking us")


def measure(context):
    why = real_cluster.why_not("kube-apiserver")
    if why:
        yield from figures(why=why)
        return
    with real_cluster.alone():
        it = Server(context)
        it.bind_ours()  # the API server is warm then, and it is known what we write
        yield from figures(interleaved(context.rounds, ours=it.bind_ours, bare=it.bind_bare, watched=it.bind_watched, kube=it.bind_kube))
