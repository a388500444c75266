"""hami-simkubelet as a process, for tests."""
import json
import os
import pathlib
import signal
import subprocess
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
PROGRAM = BUILD / "bin/hami-simkubelet"


class SimKubelet:
    def __init__(self, folder, *flags, prefix=()):
        self.dir = pathlib.Path(folder)
        self.prefix = list(prefix)  # a command that runs the rest as another user
        self.log = open(f"{folder}.log", "ab")
        self.process = subprocess.Popen([*self.prefix, str(PROGRAM), "serve", f"--dir={self.dir}", *flags],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait_up(self, seconds=10):
        end = time.monotonic() + seconds
        while not (self.dir / "device-plugins/kubelet.sock").exists():
            assert self.process.poll() is None and time.monotonic() < end, pathlib.Path(self.log.name).read_text()
            time.sleep(0.005)
        return self

    def client(self, *words, text=None, timeout=60):
        return subprocess.run([*self.prefix, str(PROGRAM), words[0], f"--dir={self.dir}", *words[1:]], input=text,
                              capture_output=True, text=True, timeout=timeout, check=False)

    def ask(self, **request):
        """The last answer to a request."""
        done = self.client("ctl", json.dumps(request))
        assert done.stdout, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, manifest, wait="done", timeout=60):
        """Events of the pod, the final line last."""
        done = self.client("run", f"--wait={wait}", "-", text=json.dumps(manifest), timeout=timeout)
        assert done.stdout, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def status(self):
        return self.ask(cmd="status")

    def pod(self, name):
        return next((p for p in self.status()["pods"] if p["name"] == name), None)

    def container(self, pod, name="c"):
        return next(c for c in self.pod(pod)["containers"] if c["name"] == name)

    def logs(self, target):
        done = self.client("logs", target)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()


def pod(name, containers, inits=(), restart="Never"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": restart, "initContainers": list(inits), "containers": list(containers)}}


def container(name="c", script="true", devices=0, env=None, **more):
    out = {"name": name, "command": ["/bin/sh", "-c", script], **more}
    if devices:
        out["resources"] = {"limits": {"hami.com/vgpu": devices}}
    if env:
        out["env"] = [{"name": k, "value": v} for k, v in env.items()]
    return out
