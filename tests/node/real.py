"""The node of tests/e2e/cluster: a real kubelet, API server, scheduler and containerd in namespaces of their own."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from node.base import PLAIN, RESOURCE, REPO, Node, wait_until

SCRIPTS = REPO / "tests/e2e/cluster"
CLUSTER = pathlib.Path(os.environ.get("CLUSTER_DIR") or
                       pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hami-cluster")
IMAGE = "localhost/vgpu-probe:1"


def script(name, *args, check=True, timeout=600, env=None):
    done = subprocess.run([str(SCRIPTS / name), *args], capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, "CLUSTER_DIR": str(CLUSTER), **(env or {})})
    if check and done.returncode != 0:
        raise AssertionError(f"{name} {' '.join(args)}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def in_network(*argv):
    """A command line that runs argv from here in the cluster's network, without its mounts and pids."""
    init = (CLUSTER / "run/init.pid").read_text().strip()
    return ["nsenter", "-t", init, "-n", *map(str, argv)]


@contextlib.contextmanager
def stopped(component):
    """One of the cluster's programs stands still."""
    pid = int((CLUSTER / f"run/{component}.pid").read_text())
    parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        os.kill(parent, signal.SIGCONT)  # nsenter stops with its child, and would not reap it


def probe_rootfs(folder):
    """A root file system with a shell, a few tools and vgpu-probe, from this machine's own files."""
    root = pathlib.Path(folder)
    for d in ("bin", "tmp", "etc", "lib64", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "run"):
        (root / d).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    tools = ["/bin/dash", "/bin/cat", "/bin/sleep", "/bin/ls", "/bin/mkdir", "/usr/bin/env", "/usr/bin/id", str(PLAIN / "tests/vgpu-probe")]
    for tool in tools:
        shutil.copy2(tool, root / "bin")
        out = subprocess.run(["ldd", tool], capture_output=True, text=True, check=False).stdout
        for word in out.split():
            if word.startswith("/lib") and not (root / word[1:]).exists():
                shutil.copy2(os.path.realpath(word), root / word[1:])
    (root / "bin/sh").symlink_to("dash")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")


class RealNode(Node):
    up_env = {}  # up.sh's

    def __init__(self, folder, **kw):
        super().__init__(folder, **kw)
        self.pods = set()

    # --- cluster ------------------------------------------------------------------------------------------------------------
    def up(self):
        script("up.sh", env=self.up_env)
        with tempfile.TemporaryDirectory() as tmp:
            probe_rootfs(f"{tmp}/root")
            script("mkimage.sh", f"{tmp}/root", IMAGE, f"{tmp}/probe.tar", '["/bin/sh"]',
                   '["PATH=/bin","NVIDIA_VISIBLE_DEVICES=all","LD_PRELOAD=/image.so"]')
            script("in", "ctr", "images", "import", f"{tmp}/probe.tar")

    def down(self):
        self.stop_agent(signal.SIGKILL)
        script("down.sh", "--wipe", check=False)

    def command(self, argv):
        init = (CLUSTER / "run/init.pid").read_text().strip()
        return ["nsenter", "-t", init, "-m", "-n", "-u", "-p", "--wd=/", *argv]

    def plugin_dir(self):
        return CLUSTER / "var/kubelet/device-plugins"

    def cdi_dir(self):
        return CLUSTER / "run/cdi"

    def agent_paths(self):
        return ["--kubelet-socket=/var/lib/kubelet/device-plugins/kubelet.sock",
                "--pod-resources-socket=/var/lib/kubelet/pod-resources/kubelet.sock",
                "--cdi-dir=/run/cdi", f"--nvidia-cdi-spec={self.sim}/cdi/nvidia.json"]

    def kubectl(self, *args, text_in=None, check=True):
        done = subprocess.run([str(SCRIPTS / "k"), *args], input=text_in, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "CLUSTER_DIR": str(CLUSTER)})
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.stderr}")
        return done.stdout

    def allocatable(self):
        text = self.kubectl("get", "node", "node1", "-o", r"jsonpath={.status.allocatable.hami\.com/vgpu}")
        return int(text or 0)

    def restart_kubelet(self, signo="TERM"):
        script("down.sh", "--only", "kubelet", env={"SIG": signo})
        script("up.sh", "--only", "kubelet")

    # --- pods -----------------------------------------------------------------------------------------------------------------
    @staticmethod
    def manifest(pod):
        def container(c):
            out = {"name": c.name, "image": IMAGE, "imagePullPolicy": "Never", "command": c.command,
                   "env": [{"name": k, "value": v} for k, v in c.env.items()]}
            if c.vgpu:
                out["resources"] = {"limits": {RESOURCE: c.vgpu}}
            if c.sidecar:
                out["restartPolicy"] = "Always"
            return out
        inits = [container(c) for c in pod.containers if c.init or c.sidecar]
        mains = [container(c) for c in pod.containers if not (c.init or c.sidecar)]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name},
                "spec": {"restartPolicy": pod.restart, "terminationGracePeriodSeconds": 0,
                         "automountServiceAccountToken": False, "initContainers": inits, "containers": mains}}

    def create(self, *pods):
        text = "\n---\n".join(json.dumps(self.manifest(p)) for p in pods)
        self.kubectl("apply", "-f", "-", text_in=text)
        self.pods |= {p.name for p in pods}

    def pod(self, name):
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))

    def phase(self, name):
        return self.pod(name)["status"].get("phase", "")

    def reason(self, name):
        return self.pod(name)["status"].get("reason", "")

    def wait_phase(self, name, *phases, seconds=60):
        return wait_until(f"pod {name} {'/'.join(phases)}", seconds,
                          lambda: self.phase(name) if self.phase(name) in phases else None, every=0.2)

    def wait_running(self, names, seconds=120):
        names = set(names)

        def all_running():
            items = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
            return names <= {i["metadata"]["name"] for i in items if i["status"].get("phase") == "Running"}
        wait_until(f"{len(names)} pods running", seconds, all_running, every=0.2)

    def output(self, name, container="c", previous=False):
        return self.kubectl("logs", name, "-c", container, *(["--previous"] if previous else []))

    def restarts(self, name, container="c"):
        for status in self.pod(name)["status"].get("containerStatuses", []):
            if status["name"] == container:
                return status["restartCount"]
        return 0

    def execute(self, name, command, container="c"):
        """A kubelet that has just started does not know its pods for a moment."""
        end = time.monotonic() + 30
        while True:
            try:
                return self.kubectl("exec", name, "-c", container, "--", *command)
            except AssertionError as e:
                if "pod does not exist" not in str(e) or time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def kill_container(self, name, container="c"):
        for status in self.pod(name)["status"]["containerStatuses"]:
            if status["name"] == container:
                cid = status["containerID"].split("//", 1)[1]
                script("in", "ctr", "tasks", "kill", "-s", "KILL", cid)

    def delete(self, *names):
        if names:
            self.kubectl("delete", "pod", *names, "--now", "--ignore-not-found", "--wait=true")
            self.pods -= set(names)

    def delete_all(self):
        self.delete(*sorted(self.pods))

    def uid(self, name):
        return self.pod(name)["metadata"]["uid"]

    @staticmethod
    def settle():
        time.sleep(0.3)
