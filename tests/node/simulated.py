"""The node without a cluster: hami-simkubelet as kubelet and runtime, on this machine itself."""
import json
import pathlib
import shutil
import signal
import subprocess
import time

from node.base import BUILD, RESOURCE, Node, wait_until


class SimulatedNode(Node):
    def __init__(self, folder, **kw):
        super().__init__(folder, **kw)
        self.kubelet = None
        self.dir = self.folder / "k"

    def up(self, *flags):
        with open(self.folder / "kubelet.log", "ab") as log:
            self.kubelet = subprocess.Popen(
                [str(BUILD / "bin/hami-simkubelet"), "serve", f"--dir={self.dir}", "--readmit-ms=700",
                 f"--bind={BUILD}/tests/vgpu-probe:/bin/vgpu-probe", *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until("hami-simkubelet", 20, (self.dir / "device-plugins/kubelet.sock").exists)

    def down(self):
        self.stop_agent(signal.SIGKILL)
        if self.kubelet is not None:
            self.kubelet.terminate()
            self.kubelet.wait(20)
        self.driver_down()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what Node asks -------------------------------------------------------------------------------------------
    def command(self, argv):
        return argv

    def plugin_dir(self):
        return self.dir / "device-plugins"

    def cdi_dir(self):
        return self.dir / "cdi"

    def agent_paths(self):
        return [f"--kubelet-socket={self.dir}/device-plugins/kubelet.sock",
                f"--pod-resources-socket={self.dir}/pod-resources/kubelet.sock",
                f"--cdi-dir={self.dir}/cdi", f"--nvidia-cdi-spec={self.sim}/cdi/nvidia.json"]

    # --- kubelet --------------------------------------------------------------------------------------------------
    def client(self, *words, text_in=None, check=True):
        done = subprocess.run([str(BUILD / "bin/hami-simkubelet"), words[0], f"--dir={self.dir}", *words[1:]],
                              input=text_in, capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"hami-simkubelet {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.client("status"))

    def allocatable(self):
        return int(self.status()["resources"].get(RESOURCE, {}).get("allocatable", 0))

    def restart_kubelet(self, _signo="TERM"):
        self.client("kubelet-restart")
        wait_until("the kubelet is back", 20, lambda: self.status()["kubelet"])

    # --- pods -----------------------------------------------------------------------------------------------------
    @staticmethod
    def manifest(pod):
        def container(c):
            out = {"name": c.name, "command": c.command, "env": [{"name": k, "value": v} for k, v in c.env.items()]}
            if c.vgpu:
                out["resources"] = {"limits": {RESOURCE: c.vgpu}}
            if c.sidecar:
                out["restartPolicy"] = "Always"
            return out
        inits = [container(c) for c in pod.containers if c.init or c.sidecar]
        mains = [container(c) for c in pod.containers if not (c.init or c.sidecar)]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name},
                "spec": {"restartPolicy": pod.restart, "initContainers": inits, "containers": mains}}

    def create(self, *pods):
        for pod in pods:
            self.client("run", "--wait=none", "-", text_in=json.dumps(self.manifest(pod)))

    def pod(self, name):
        return next(p for p in self.status()["pods"] if p["name"] == name)

    def container(self, name, container):
        return next(c for c in self.pod(name)["containers"] if c["name"] == container)

    def phase(self, name):
        return self.pod(name)["phase"]

    def reason(self, name):
        return self.pod(name)["reason"]

    def wait_phase(self, name, *phases, seconds=60):
        return wait_until(f"pod {name} {'/'.join(phases)}: {self.pod(name)}", seconds,
                          lambda: self.phase(name) if self.phase(name) in phases else None)

    def wait_running(self, names, seconds=120):
        names = set(names)
        wait_until(f"{len(names)} pods running", seconds,
                   lambda: names <= {p["name"] for p in self.status()["pods"] if p["phase"] == "Running"})

    def output(self, name, container="c", previous=False):
        path = self.container(name, container)["log"] + (".1" if previous else "")
        return pathlib.Path(path).read_text() if pathlib.Path(path).is_file() else ""

    def restarts(self, name, container="c"):
        return self.container(name, container)["restarts"]

    def execute(self, name, command, container="c"):
        return self.client("exec", f"{name}/{container}", *command, check=False)

    def kill_container(self, name, container="c"):
        self.client("kill", f"{name}/{container}")

    def delete(self, *names):
        for name in names:
            self.client("delete", name, check=False)

    def delete_all(self):
        self.delete(*[p["name"] for p in self.status()["pods"]])

    def uid(self, name):
        return self.pod(name)["uid"]

    @staticmethod
    def settle():
        time.sleep(1.0)  # beyond the readmission of old pods
