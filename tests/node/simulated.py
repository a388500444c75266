"""The node of hami-simkubelet: the kubelet's calls and containers of namespaces, no cluster."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

from node.base import BUILD, PLAIN, Node, wait_until

PROGRAM = str(BUILD / "bin/hami-simkubelet")


class SimulatedNode(Node):
    def __init__(self, folder, **kw):
        super().__init__(folder, **kw)
        self.dir = self.folder / "k"
        self.pods = set()
        self.process = None

    def binds(self):
        """What every container has besides, as FROM:TO."""
        return []

    def up(self):
        with open(self.folder / "kubelet.log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "serve", f"--dir={self.dir}", "--bind=" + ",".join([f"{PLAIN}/tests/vgpu-probe:/bin/vgpu-probe", *self.binds()]), "--restart-ms=50",
                 "--retry-ms=1000"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until("hami-simkubelet: " + str(self.folder / "kubelet.log"), 10,
                   lambda: self.process.poll() is not None or (self.dir / "device-plugins/kubelet.sock").exists())
        assert self.process.poll() is None, (self.folder / "kubelet.log").read_text()

    def down(self):
        self.stop_agent(signal.SIGKILL)
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)
        if self.sim.exists():
            self.driver_down()

    def command(self, argv):
        return argv

    def plugin_dir(self):
        return self.dir / "device-plugins"

    def cdi_dir(self):
        return self.dir / "cdi"

    def agent_paths(self):
        return [f"--kubelet-socket={self.dir}/device-plugins/kubelet.sock",
                f"--pod-resources-socket={self.dir}/pod-resources/kubelet.sock", f"--cdi-dir={self.dir}/cdi",
                f"--nvidia-cdi-spec={self.sim}/cdi/nvidia.json"]

    # --- kubelet ----------------------------------------------------------------------------------------------------------
    def client(self, *words, check=True):
        done = subprocess.run([PROGRAM, words[0], f"--dir={self.dir}", *words[1:]], capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, f"hami-simkubelet {words}: {done.stdout} {done.stderr}"
        return done.stdout

    def ask(self, cmd, **more):
        """Its last answer to a request of the control socket (sim/simkubelet/control.c): without a process for each."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(str(self.dir / "simkubelet.sock"))
            s.sendall(json.dumps({"cmd": cmd, **more}).encode() + b"\n")
            for line in s.makefile():
                answer = json.loads(line)
                if answer.get("done"):
                    return answer
        raise AssertionError(f"hami-simkubelet ended at {cmd}")

    def status(self):
        return self.ask("status")

    def allocatable(self):
        return self.status()["resources"].get(self.resource, {}).get("allocatable", 0)

    def restart_kubelet(self, _signo="TERM"):
        self.client("kubelet-restart")

    # --- pods -----------------------------------------------------------------------------------------------------------------
    def manifest(self, pod):
        def container(c):
            out = {"name": c.name, "command": c.command, "env": [{"name": k, "value": v} for k, v in c.env.items()]}
            if c.vgpu:
                out["resources"] = {"limits": {self.resource: str(c.vgpu)}}
            if c.sidecar:
                out["restartPolicy"] = "Always"
            return out
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name},
                "spec": {"restartPolicy": pod.restart,
                         "initContainers": [container(c) for c in pod.containers if c.init or c.sidecar],
                         "containers": [container(c) for c in pod.containers if not (c.init or c.sidecar)]}}

    def create(self, *pods):
        for pod in pods:
            self.ask("run", wait="none", pod=self.manifest(pod))
            self.pods.add(pod.name)

    def pod(self, name):
        return next(p for p in self.status()["pods"] if p["name"] == name)

    def phase(self, name):
        return self.pod(name)["phase"]

    def reason(self, name):
        return self.pod(name)["reason"]

    def uid(self, name):
        return self.pod(name)["uid"]

    def container(self, name, container="c"):
        return next(c for c in self.pod(name)["containers"] if c["name"] == container)

    def wait_phase(self, name, *phases, seconds=60):
        return wait_until(f"pod {name} {'/'.join(phases)}", seconds,
                          lambda: self.phase(name) if self.phase(name) in phases else None)

    def wait_running(self, names, seconds=120):
        wait_until(f"pods running: {names}", seconds, lambda: all(self.phase(n) == "Running" for n in names))

    def output(self, name, container="c"):
        return self.client("logs", f"{name}/{container}", check=False)

    def restarts(self, name, container="c"):
        return self.container(name, container)["restarts"]

    def execute(self, name, command, container="c"):
        return self.client("exec", f"{name}/{container}", *command)

    def kill_container(self, name, container="c"):
        self.client("kill", f"{name}/{container}", "9")

    def delete(self, *names):
        for name in names:
            self.ask("delete", name=name)
            self.pods.discard(name)

    def delete_all(self):
        self.delete(*sorted(self.pods))

    @staticmethod
    def settle():
        time.sleep(0.3)
