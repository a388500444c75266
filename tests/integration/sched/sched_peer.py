"""hami-scheduler as a process, certificates by openssl, and HTTP as it is on the wire."""
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request


INTEGRATION = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(INTEGRATION), str(INTEGRATION / "kube")]
from api_server import ApiServer, status_tree  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402
from waiting import wait_until  # noqa: E402

REPO = pathlib.Path(__file__).resolve().parents[3]
# Several replicas: one leads, by a Lease that is soon lost; what the others say.
FAST = ["--leader-elect", "--leader-elect-by=lease", "--leader-elect-resource-name=hami", "--pod-namespace=kube-system",
        "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=300ms"]
NOT_LEADING = ("this replica does not lead", "the new leader does not know yet what the last one has bound")


def slow(h, late, work):
    """A change that gets here when this part of its time is over, is then worked on for so many seconds, and given up as the
    real server does when ?timeout= is over. Whoever sent it may be gone long since."""
    limit = int(h.request_seen.query["timeout"].removesuffix("ms")) / 1000
    time.sleep(late * limit)
    begun = time.monotonic()
    time.sleep(min(limit, work))
    with h.server.api.lock:
        done = time.monotonic() - begun < limit
        code, tree = h.server.api.change(h.request_seen, *h.server.api.split(h.request_seen.path)) if done else (
            504, status_tree(504, "Timeout", "request did not complete within the allotted timeout"))
    h.json(code, tree)


class Authority:
    """A CA and what it signs: NAME.crt and NAME.key in the folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "ca.key",
                     "-out", "ca.crt", "-subj", "/CN=authority", "-days", "30")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True, timeout=60)

    def issue(self, name, common_name="scheduler"):
        (self.folder / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:scheduler.kube-system.svc\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key",
                     "-out", f"{name}.csr", "-subj", f"/CN={common_name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                     "-out", f"{name}.crt", "-extfile", "ext")
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


class Scheduler:
    def __init__(self, build, folder):
        self.program = build / "bin/hami-scheduler"
        self.sanitized = b"__asan_init" in self.program.read_bytes()
        self.out = folder / "log"
        self.process = None
        self.tls = None

    def start(self, *flags, env=None, under=()):
        """Without an API server of the test's there is one that never answers."""
        if not any(flag.startswith("--kubeconfig") for flag in flags):
            flags = (*flags, f"--kubeconfig={write_kubeconfig(self.out.parent / 'nowhere', 'http://127.0.0.1:1')}")
        clean = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "HAMI_NODELOCK_EXPIRE")}
        with open(self.out, "w") as out:
            self.process = subprocess.Popen(
                [*under, str(self.program), "--http_bind=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--shutdown-delay=0s",
                 *flags], stderr=out, stdout=out, env=clean | (env or {}))
        wait_until("the start", 30, lambda: self.process.poll() is not None or " starts " in self.log())
        assert self.process.poll() is None, self.log()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def log(self):
        return self.out.read_text()

    def said(self, name):
        return int(re.search(rf"hami-scheduler starts .*\b{name}=(\d+)", self.log()).group(1))

    @property
    def port(self):
        return self.said("port")

    def connect(self, timeout=30):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        return self.tls.wrap_socket(sock, server_hostname="127.0.0.1") if self.tls else sock

    def ask(self, method, path, body=b"", headers=(), on=None):
        """(status, headers, body); `on`: a connection that is kept."""
        sock = on or self.connect()
        head = f"{method} {path} HTTP/1.1\r\nHost: scheduler\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in headers)
        try:
            sock.sendall(head.encode() + b"\r\n" + body)
            return read_answer(sock)
        finally:
            if on is None:
                sock.close()

    def filter(self, a_pod, names, on=None):
        """The answer to /filter."""
        body = json.dumps({"Pod": a_pod, "Nodes": None, "NodeNames": names}).encode()
        status, _, answer = self.ask("POST", "/filter", body, [("Content-Type", "application/json")], on)
        assert status == 200, answer
        return json.loads(answer)

    def bind(self, a_pod, node, uid=None):
        """The error in the answer to /bind; "": it is bound."""
        status, _, answer = self.ask("POST", "/bind", json.dumps(bind_args(a_pod, node, uid)).encode())
        assert status == 200, answer
        return json.loads(answer)["Error"]

    def wait_ready(self):
        wait_until("the first sync", 60, lambda: self.ask("GET", "/readyz")[0] == 200)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.said('metrics_port')}/metrics", timeout=30) as answer:
            return answer.read().decode()

    def metric(self, name, **labels):
        text = self.metrics()
        wanted = name + ("{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else "")
        return float(re.search(rf"^{re.escape(wanted)} (\S+)$", text, re.M).group(1))

    def rss_kib(self, which="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{which}:\s+(\d+)", status.read()).group(1))

    def end(self, signo=signal.SIGTERM):
        if self.process is None or self.process.poll() is not None:
            return self.process and self.process.returncode
        self.process.send_signal(signo)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def read_answer(sock):
    got = b""
    while b"\r\n\r\n" not in got:
        part = sock.recv(65536)
        if not part:
            raise ConnectionError(f"closed within an answer's header: {got!r}")
        got += part
    head, body = got.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
    while len(body) < int(headers.get("content-length", 0)):
        part = sock.recv(65536)
        if not part:
            raise ConnectionError("closed within an answer's body")
        body += part
    return int(lines[0].split()[1]), headers, body


class Volume:
    """A folder as the kubelet makes it of a Secret: links through ..data, so that all files change at once."""

    def __init__(self, folder):
        self.folder = folder
        self.version = 0
        folder.mkdir()

    def write(self, files):
        """{name: bytes}; others go."""
        self.version += 1
        fresh = self.folder / f"..v{self.version}"
        fresh.mkdir()
        for name, data in files.items():
            (fresh / name).write_bytes(data)
        (self.folder / "..tmp").symlink_to(fresh.name)
        (self.folder / "..tmp").rename(self.folder / "..data")
        there = {path.name for path in self.folder.iterdir() if not path.name.startswith("..")}
        for name in files.keys() - there:
            (self.folder / name).symlink_to(f"..data/{name}")
        for name in there - files.keys():
            (self.folder / name).unlink()


class Secret(Volume):
    """Of a certificate and its key."""

    def put(self, authority, cert, key=None):
        self.write({name: (authority.folder / source).read_bytes()
                    for name, source in (("tls.crt", f"{cert}.crt"), ("tls.key", f"{key or cert}.key"))})


class Cluster:
    """Nodes with cards, and pods, on a stand-in for the API server."""

    def __init__(self, folder, api=None):
        self.api = api or ApiServer()
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{self.api.port}")

    def node(self, name, cards=1, memory=40000, slots=10, late=False, host=None, **annotations):
        """`late`: its agent says that it binds late. `host`: allocatable CPU and memory."""
        more = {"custominfo": {"binding": "late"}} if late else {}
        register = [{"id": f"GPU-{name}-{i}", "index": i, "count": slots, "devmem": memory, "devcore": 100, "type": "NVIDIA A100",
                     "mode": "hami-core", "health": True, **more} for i in range(cards)]
        return self.api.put_tree("nodes", None, {
            "metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": json.dumps(register), **annotations}},
            "status": {"allocatable": {"nvidia.com/gpu": str(cards * slots), **(host or {})}}})

    def pod(self, name, memory=30000, **more):
        """A pod that asks for one card."""
        return self.api.put_tree("pods", "default", {**pod(name, **gpu(memory)), "status": {"phase": "Pending"}, **more})

    def held(self, name, node, text, containers=1):
        """A pod that is bound with these shares."""
        spec = [{"name": f"c{i}", "resources": {"limits": {"nvidia.com/gpu": "1"}}} for i in range(containers)]
        return self.bound(name, node, text, containers=spec)

    def runs(self, name, node, memory, card=0, **spec):
        """A pod that asked for so much of a card, and has it of this one."""
        return self.bound(name, node, f"GPU-{node}-{card},NVIDIA,{memory},0:;", **pod(name, **gpu(memory))["spec"], **spec)

    def bound(self, name, node, text, **spec):
        return self.api.put_tree("pods", "default", {
            "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {
                "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1", "hami.io/vgpu-devices-allocated": text}},
            "spec": {**spec, "nodeName": node}, "status": {"phase": "Running"}})


def is_binding(h):
    """Of a request that has come to the API server."""
    return h.request_seen.path.endswith("/binding")


def held_until(gate):
    """A fault of the API server: it does what it is asked for when the gate is open."""
    def fault(h):
        gate.wait(60)
        h.server.api.answer(h)
    return fault


def bind_args(a_pod, node, uid=None):
    meta = a_pod["metadata"]
    return {"PodName": meta["name"], "PodNamespace": "default", "PodUID": uid or meta["uid"], "Node": node}


def pod(name="p", **limits):
    """Limits as nvidia_com__gpu=1."""
    limits = {k.replace("__", "/").replace("_", "."): str(v) for k, v in limits.items()}
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}


def gpu(memory, count=1, **more):
    return {"nvidia_com__gpu": count, "nvidia_com__gpumem": memory, **more}
