"""The real cluster with the agent as users run it: our image, a manifest of deploy/examples, and the few things that a
simulated driver needs on top."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import yaml

from node.base import BUILD, REPO, wait_until
from node.real import CLUSTER, RealNode, script

IMAGE = "localhost/hami-device-plugin:1"
EXAMPLES = REPO / "deploy/examples"


def import_image():
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run([str(REPO / "deploy/docker/build-image.sh"), "--build", str(BUILD), "--name", IMAGE, f"{tmp}/agent.tar"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        script("in", "ctr", "images", "import", f"{tmp}/agent.tar")


class DeployedNode(RealNode):
    """`example`: a file of deploy/examples. Flags of start_agent are added to its arguments."""

    def __init__(self, folder, example, **kw):
        super().__init__(folder, **kw)
        self.example = example
        self.state = CLUSTER / "var/hami-vgpu"
        self.applied = None
        self.config_maps = {}  # {name: {key: text}}, in place of the example's

    def up(self):
        super().up()
        import_image()
        driver = CLUSTER / "var/usr-local-hami/driver"
        driver.mkdir(parents=True, exist_ok=True)
        # What the guide's manifests mount as the driver: NVML lies there.
        shutil.copy2(BUILD / "sim/libnvidia-ml.so.1", driver)
        self.kubectl("label", "--overwrite", "node", "node1", "hami.com/gpu=true", "gpu=on")

    # --- the manifest --------------------------------------------------------------------------------------------------
    def overlay(self, container, flags, env):
        """What only a simulated driver needs, and what a test adds."""
        container["image"], container["imagePullPolicy"] = IMAGE, "Never"
        if container["name"] == "vgpu-monitor":
            return
        where = "args" if "args" in container or "command" not in container else "command"
        container[where] = container.get(where, []) + [
            f"--nvml-library={BUILD}/sim/libnvidia-ml.so.1", f"--nvidia-cdi-spec={self.sim}/cdi/nvidia.json", *flags]
        container["env"] = container.get("env", []) + [{"name": k, "value": v} for k, v in
                                                       {"HAMI_SIM_DIR": str(self.sim), **(env or {})}.items()]
        container["volumeMounts"] += [{"name": "sim", "mountPath": str(self.sim)}, {"name": "build", "mountPath": str(BUILD)}]

    def manifest_of_agent(self, flags, env):
        docs = list(yaml.safe_load_all((EXAMPLES / self.example).read_text()))
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] in self.config_maps:
                doc["data"] = self.config_maps[doc["metadata"]["name"]]
            if doc["kind"] != "DaemonSet":
                continue
            spec = doc["spec"]["template"]["spec"]
            spec.pop("runtimeClassName", None)  # there is no NVIDIA runtime here
            spec["terminationGracePeriodSeconds"] = 2
            for container in spec["containers"]:
                self.overlay(container, flags, env)
            spec["volumes"] += [{"name": "sim", "hostPath": {"path": str(self.sim)}}, {"name": "build", "hostPath": {"path": str(BUILD)}}]
        return docs

    # --- the agent, as base.Node has it ------------------------------------------------------------------------------------
    def start_agent(self, *flags, env=None, binding=None):
        assert self.applied is None
        flags = [*flags, *([f"--binding={binding}"] if binding else [])]
        self.applied = "\n---\n".join(json.dumps(d) for d in self.manifest_of_agent(flags, env))
        self.kubectl("apply", "-f", "-", text_in=self.applied)
        self.agent = self  # what base.Node asks of a process

    def agent_pods(self):
        items = json.loads(self.kubectl("-n", "kube-system", "get", "pods", "-o", "json"))["items"]
        return [p for p in items if p["metadata"]["name"].startswith("hami-device-plugin-")]

    def poll(self):
        """None: it was started and not stopped (a pod is started again by the kubelet)."""
        return None if self.applied is not None else 0

    def agent_pid(self):
        """Its pid as the test's own namespace has it."""
        def find():
            for path in pathlib.Path("/proc").iterdir():
                try:
                    if path.name.isdigit() and (path / "comm").read_text() in ("hami-device-plu\n", "nvidia-device-p\n") and \
                            "hami-cluster-" in (path / "cgroup").read_text():
                        return int(path.name)
                except OSError:
                    pass
            return 0
        return wait_until("the agent's process", 60, find, every=0.1)

    def running(self):
        return [p["metadata"]["name"] for p in self.agent_pods() if all(c.get("ready") for c in p["status"].get("containerStatuses", [{}]))]

    def stop_agent(self, signo=signal.SIGTERM):
        """The process by the signal first, then its pod."""
        if self.applied is None:
            return 0
        if signo != signal.SIGTERM:
            os.kill(self.agent_pid(), signo)
        self.kubectl("delete", "-f", "-", "--now", "--wait=true", "--ignore-not-found", text_in=self.applied)
        wait_until("its pods are gone", 60, lambda: not self.agent_pods(), every=0.1)
        self.applied = self.agent = None
        return 0

    def down(self):
        script("down.sh", "--wipe", check=False)

    def logs(self, previous=False):
        return self.kubectl("-n", "kube-system", "logs", "ds/hami-device-plugin", "--all-containers=true", "--tail=2000",
                            *(["--previous"] if previous else []), check=False)

    def agent_says(self):
        return self.logs()

    def metrics(self, port=9394):
        """The page, from a pod's address or the node's own network."""
        (pod,) = self.agent_pods()
        code = f"import urllib.request; print(urllib.request.urlopen('http://{pod['status']['podIP']}:{port}/metrics', timeout=10).read().decode())"
        done = subprocess.run(self.command(["/usr/bin/python3", "-c", code]), capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
