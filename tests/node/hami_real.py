"""The real cluster with the agent in mode hami, deployed, and what a scheduler does to a pod: a Binding with HAMi's
annotations, which the API server merges into the pod in the same write."""
import json
import subprocess
import time

from node.base import wait_until
from node.deployed import DeployedNode
from node.hami import ALLOCATED, GPU, LOCK, PHASE, REGISTER, TO_ALLOCATE, device_text
from node.real import CLUSTER, SCRIPTS

PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/node1"


class Api:
    """The API server by a helper inside the cluster's network."""

    def __init__(self, node):
        self.process = subprocess.Popen(node.command(["/usr/bin/env", f"CLUSTER_DIR={CLUSTER}", str(SCRIPTS / "api.py")]),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, method, path, body=None, kind=None, want=(200, 201, 202)):
        self.process.stdin.write(json.dumps({"method": method, "path": path, "body": body, "type": kind}) + "\n")
        self.process.stdin.flush()
        status, tree = json.loads(self.process.stdout.readline())
        assert status in want, (method, path, status, tree)
        return tree

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class HamiDeployed(DeployedNode):
    """Pods name a scheduler that nobody is; the test binds them."""
    resource = GPU
    split = 10
    api = None
    # In classic binding NVIDIA's container runtime brings the driver into the container, by the environment that the agent
    # sets. There is none here: then the pods bring it themselves.
    pods_bring_the_driver = False

    def up(self):
        super().up()
        self.api = Api(self)

    def down(self):
        if self.api:
            self.api.close()
        self.api = None
        super().down()

    def allocatable(self):
        return int(self.api("GET", NODE)["status"]["allocatable"].get(self.resource, 0))

    def node_annotations(self):
        return self.api("GET", NODE)["metadata"]["annotations"]

    def registered(self):
        return json.loads(self.node_annotations().get(REGISTER, "[]"))

    def uuids(self):
        return [c["id"] for c in self.registered()]

    # --- pods ---------------------------------------------------------------------------------------------------------
    def manifest(self, pod):
        tree = super().manifest(pod)
        tree["spec"]["schedulerName"] = "of-the-test"
        counts = {c.name: c.vgpu for c in pod.containers if c.vgpu}
        for c in tree["spec"]["initContainers"] + tree["spec"]["containers"]:
            if c["name"] in counts:
                c["resources"] = {"limits": {self.resource: counts[c["name"]]}}
                if self.pods_bring_the_driver:
                    self.bring_driver(c, tree["spec"])
        return tree

    def bring_driver(self, container, spec):
        edits = json.loads((self.sim / "cdi/nvidia.json").read_text())["containerEdits"]
        container["env"] += [dict(zip(("name", "value"), text.split("=", 1))) for text in edits["env"]]
        mounts = edits["mounts"]
        container["volumeMounts"] = [{"name": f"driver{i}", "mountPath": m["containerPath"]} for i, m in enumerate(mounts)]
        spec["volumes"] = [{"name": f"driver{i}", "hostPath": {"path": m["hostPath"]}} for i, m in enumerate(mounts)]

    def submit(self, pod):
        """In the API, unbound. Its uid."""
        self.pods.add(pod.name)
        return self.api("POST", PODS, self.manifest(pod))["metadata"]["uid"]

    def bind(self, name, uid, entries=None, **annotations):
        """One write, as our scheduler's: node and annotations. Without entries: as a pod that asks for nothing."""
        marks = {}
        if entries is not None:
            text, now = device_text(entries), str(int(time.time()))
            marks = {ALLOCATED: text, TO_ALLOCATE: text, "hami.io/vgpu-node": "node1", "hami.io/vgpu-time": now,
                     "hami.io/bind-time": now, PHASE: "allocating", **annotations}
        self.api("POST", f"{PODS}/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "default", "uid": uid, "annotations": marks},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node1"}})

    def place(self, pod, entries=None, **annotations):
        uid = self.submit(pod)
        self.bind(pod.name, uid, entries, **annotations)
        return uid

    def pod(self, name):
        return self.api("GET", f"{PODS}/{name}")

    def phases(self):
        return {p["metadata"]["name"]: p["status"].get("phase", "") for p in self.api("GET", PODS)["items"]}

    def wait_phases(self, names, phase, seconds=120, every=0.1):
        names = set(names)
        wait_until(f"{len(names)} pods {phase}", seconds, lambda: names <= {n for n, p in self.phases().items() if p == phase}, every=every)

    def annotations(self, name):
        return self.pod(name)["metadata"]["annotations"]

    def output(self, name, container="c", previous=False):
        return self.api("GET", f"{PODS}/{name}/log?container={container}{'&previous=true' if previous else ''}")

    def wait_finished(self, name, seconds=30):
        wait_until(f"{name}'s bind-phase", seconds, lambda: self.annotations(name).get(PHASE) == "success", every=0.1)

    def delete(self, *names):
        for name in names:
            self.api("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0}, want=(200, 202, 404))
        wait_until("the pods are gone", 90, lambda: not set(names) & set(self.phases()), every=0.1)
        self.pods -= set(names)

    def set_lock(self, value):
        self.api("PATCH", NODE, {"metadata": {"annotations": {LOCK: value}}}, "application/merge-patch+json")


def serve_hami(node, cards):
    """Everything up, the agent registered and its cards on the Node; for a module's own `node` fixture."""
    node.up()
    node.driver_up()
    node.start_agent()
    want = cards * node.split
    wait_until(f"{want} devices", 90, lambda: node.allocatable() == want, every=0.5)
    wait_until("the cards are on the Node", 30, lambda: len(node.registered()) == cards, every=0.2)


__all__ = ["PODS", "HamiDeployed", "serve_hami"]
