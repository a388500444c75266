"""A node in mode hami: hami-simkubelet, the simulated driver, our agent, a stand-in API server in this process, and what a
scheduler does to a pod: its annotations and its node."""
import json
import sys
import time
import uuid

from node.base import BUILD, REPO, wait_until
from node.simulated import SimulatedNode

sys.path.insert(0, str(REPO / "tests/integration/kube"))
import api_server  # noqa: E402

GPU = "nvidia.com/gpu"
ALLOCATED = "hami.io/vgpu-devices-allocated"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
PHASE = "hami.io/bind-phase"
LOCK = "hami.io/mutex.lock"
REGISTER = "hami.io/node-nvidia-register"


def device_text(entries):
    """[[(uuid, MiB, percent), ...] for each container, init first] as HAMi's scheduler writes it."""
    return "".join("".join(f"{u},NVIDIA,{mib},{cores}:" for u, mib, cores in entry) + ";" for entry in entries)


def shares_in(text):
    """[(uuid, MiB)] of all containers: what device_text wrote."""
    cards = [c for entry in text.split(";") for c in entry.split(":") if c]
    return [(uuid, int(mib)) for uuid, _, mib, _ in (c.split(",") for c in cards)]


class HamiNode(SimulatedNode):
    resource = GPU

    def __init__(self, folder, split=10, name="node1", **kw):
        super().__init__(folder, **kw)
        self.name, self.split = name, split
        self.hook = self.folder / "hook"  # HAMi's folder is <hook>/vgpu, where there is one; not this machine's
        self.api = None
        self.kubeconfig = self.folder / "kubeconfig"

    # --- cluster ------------------------------------------------------------------------------------------------------
    def up(self):
        super().up()
        self.api = api_server.ApiServer()
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.api.port}"}}],
            "users": [{"name": "u", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))
        self.make_node_object()

    def make_node_object(self):
        info = {"kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.2.9"}
        return self.api.put_tree("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name},
                                                 "status": {"nodeInfo": info}})

    def down(self):
        super().down()
        if self.api:
            self.api.down()

    def start_agent(self, *flags, env=None, binding="late"):
        super().start_agent("--mode=hami", f"--kubeconfig={self.kubeconfig}", f"--node-name={self.name}",
                            f"--device-split-count={self.split}", f"--hook-path={self.hook}",
                            "--metrics-bind-address=127.0.0.1:0", *flags, env=env, binding=binding)

    def node_annotations(self):
        return self.api.objects["nodes", None, self.name]["metadata"]["annotations"]

    # --- pods -----------------------------------------------------------------------------------------------------------
    def uuids(self):
        return [c["uuid"] for c in self.driver_status()["cards"]]

    def api_pod(self, name, namespace="default"):
        return self.api.objects["pods", namespace, name]

    def annotations(self, name, namespace="default"):
        return self.api_pod(name, namespace)["metadata"]["annotations"]

    def manifest(self, pod):
        return {**super().manifest(pod), "metadata": {"name": pod.name, "namespace": "default"}}

    def bind(self, pod, entries, text=None, **annotations):
        """What filter and bind leave on the pod: it stands in the API, on this node. `entries` as device_text takes them;
        `text` instead of theirs; an annotation that is None is left out. Returns the manifest with its uid."""
        manifest = self.manifest(pod)
        now = str(int(time.time()))
        text = device_text(entries) if text is None else text
        marks = {ALLOCATED: text, TO_ALLOCATE: text, "hami.io/vgpu-node": self.name, "hami.io/vgpu-time": now,
                 "hami.io/bind-time": now, PHASE: "allocating", **annotations}
        manifest["metadata"] = {**manifest["metadata"], "uid": str(uuid.uuid4()),
                                "annotations": {k: v for k, v in marks.items() if v is not None}}
        manifest["spec"]["nodeName"] = self.name
        stored = json.loads(json.dumps({**manifest, "status": {"phase": "Pending"}}))
        for c in stored["spec"]["initContainers"] + stored["spec"]["containers"]:
            limits = c.get("resources", {}).get("limits", {})
            limits.update({k: str(v) for k, v in limits.items()})  # quantities are texts in the API
        self.api.put_tree("pods", "default", stored)
        return manifest

    def run(self, manifest):
        """The kubelet hears of it."""
        self.ask("run", wait="none", pod=manifest)
        self.pods.add(manifest["metadata"]["name"])

    def place(self, pod, entries, **kw):
        manifest = self.bind(pod, entries, **kw)
        self.run(manifest)
        return manifest

    def set_phase(self, name, phase, namespace="default"):
        """What the kubelet would write into the pod's status."""
        self.api.edit("pods", namespace, name, status={"phase": phase})

    def delete(self, *names):
        super().delete(*names)
        for name in names:
            if ("pods", "default", name) in self.api.objects:
                self.api.delete("pods", "default", name)

    def wait_finished(self, name, seconds=10):
        """The agent's patch: nothing left to allocate, success."""
        wait_until(f"{name}'s bind-phase", seconds, lambda: self.annotations(name).get(PHASE) == "success")

    def pod_patches(self, name, namespace="default"):
        return self.api.seen(method="PATCH", path=f"/api/v1/namespaces/{namespace}/pods/{name}")


def serve_hami(node):
    """Everything up, the agent registered; for a module's own `node` fixture."""
    node.up()
    node.driver_up()
    node.start_agent()
    want = len(node.uuids()) * node.split
    wait_until(f"{want} devices; the agent said: {node.agent_log}", 60, lambda: node.allocatable() == want)


__all__ = ["ALLOCATED", "BUILD", "GPU", "LOCK", "PHASE", "REGISTER", "TO_ALLOCATE", "HamiNode", "api_server", "device_text", "serve_hami"]
