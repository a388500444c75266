"""The client that HAMi's own scheduler was measured with (sched_client), on ours: a real API server and etcd, nodes of 9 KB
with 8 cards, pods of 3 KB that hold a share from before the start, one /filter and one /bind after the other over one
connection. HAMi v2.10.0's figures, taken once on a machine of this size, stand as `recorded`."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess

from figures import Figure
from grpc_peers import REPO
from real_cluster import CLUSTER

CLIENT = REPO / "tests/bench/sched_client"
HAMI, NAMED = "HAMi v2.10.0", 500
# nodes, pods that hold a share, pods measured; and of HAMi: start, /filter's p50, p99 and CPU, RSS at most.
SIZES = [(1000, 10000, 200, {"start_s": 38, "p50": 191, "p99": 318, "cpu": 287, "rss": 717}),
         (5000, 20000, 200, {"start_s": 110, "p50": 352, "p99": 1242, "cpu": 563, "rss": 1625})]
HAMI_CALLS = 9  # a pod: /filter 2, /bind 7


def find_go():
    """Its folder; empty where there is none."""
    return subprocess.run([str(REPO / "tools/find-go")], capture_output=True, text=True, check=False).stdout.strip()


def missing(go):
    if not go:
        return "no Go here: make test-cluster gets one"
    if not all((CLUSTER / "bin" / name).exists() for name in ("etcd", "kube-apiserver", "kubectl")):
        return "the cluster is not built: make test-cluster builds it"
    return None


def build_client(go, folder):
    subprocess.run([f"{go}/go", "build", "-o", str(folder / "sched-client"), "."], cwd=CLIENT, check=True, timeout=300,
                   env=os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"})
    return folder / "sched-client"


def free_ports(count):
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in socks]


class ApiServer:
    """kube-apiserver and etcd alone, on loopback, with an audit log of what the user "peer" asks."""

    def __init__(self, folder):
        self.folder = folder
        self.port, etcd = free_ports(2)
        self.env = os.environ | {"BENCH_DIR": str(folder), "KBIN": str(CLUSTER / "bin"), "BENCH_API_PORT": str(self.port),
                                 "BENCH_ETCD_PORT": str(etcd)}

    def script(self, verb):
        subprocess.run([str(CLIENT / "apiserver.sh"), verb], env=self.env, check=True, capture_output=True, timeout=120)

    def __enter__(self):
        self.script("up")
        return self

    def __exit__(self, *_):
        self.script("down")

    def flags(self):
        pki = self.folder / "pki"
        return ["-api", f"https://127.0.0.1:{self.port}", "-ca", str(pki / "ca.crt"), "-cert", str(pki / "admin.crt"), "-key",
                str(pki / "admin.key"), "-audit", str(self.folder / "audit.log")]


def measured(context, client, api, size):
    """The client's records: {(what, and of how many named or in which phase): fields}."""
    nodes, held, pods, _ = size
    port, = free_ports(1)
    done = subprocess.run(
        [str(client), *api.flags(), "-ext", f"http://127.0.0.1:{port}", "-nodes", str(nodes), "-preload", str(held), "-pods", str(pods),
         "-k", str(NAMED), "-bind", "-check=bind", "-late", "-log", str(context.folder / "peer.log"), "--",
         str(context.build / "bin/hami-scheduler"), f"--http_bind=127.0.0.1:{port}", "--metrics-bind-address=",
         "--scheduler-name=hami-scheduler", "--shutdown-delay=0s", "--node-scheduler-policy=binpack", "--gpu-scheduler-policy=spread",
         f"--kubeconfig={api.folder}/pki/peer.conf"], capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr + (context.folder / "peer.log").read_text()[-2000:])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["what"], line.get("named", line.get("phase", ""))): line for line in lines}


def figures_of(size, found):
    nodes, held, _, hami = size
    start, asked, bound, end = (found[key] for key in (("start", ""), ("filter", NAMED), ("bind", NAMED), ("end", "")))
    calls = sum(found["calls", f"{verb} {NAMED}"]["per_pod"] for verb in ("filter", "bind"))
    of, why = f"sched.peer_{nodes}", f"{nodes} nodes, {held} pods, {NAMED} named"

    def row(name, unit, value, recorded=None, goal=None):
        return Figure(f"{of}_{name}", unit, value, goal=goal, why=why, recorded=recorded and {HAMI: recorded})

    yield row("filter_cpu", "ms", asked["cpu_ms"], hami["cpu"], f"<= {hami['cpu'] / 100:g}")
    yield row("filter_p50", "ms", asked["p50_ms"], hami["p50"])
    yield row("filter_p99", "ms", asked["p99_ms"], hami["p99"])
    yield row("bind_p50", "ms", bound["p50_ms"])
    yield row("bind_p99", "ms", bound["p99_ms"])
    yield row("calls_per_pod", "calls", calls, HAMI_CALLS, "<= 1")
    yield row("start_calls", "calls", found["calls", "start"]["total"], 10 * nodes)
    yield row("start_s", "s", start["registered_s"], hami["start_s"])
    yield row("rss_peak", "MiB", end["rss_peak_mib"], hami["rss"], "<= 500")


def measure(context):
    go = find_go()
    why = missing(go)
    if why:
        yield Figure("sched.peer_1000_filter_cpu", "ms", None, goal="<= 2.87", why=why, recorded={HAMI: 287})
        return
    client = build_client(go, context.folder)
    for size in SIZES:
        folder = pathlib.Path(context.folder) / f"api{size[0]}"
        with ApiServer(folder) as api:
            yield from figures_of(size, measured(context, client, api, size))
        shutil.rmtree(folder, ignore_errors=True)
