"""The agent on a simulated node: Allocate beside servers that do nothing, a long ListAndWatch, memory, start."""
import concurrent.futures
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import grpc
import yaml

from figures import Figure, interleaved, median, percentile
from grpc_peers import REPO, Caller, Registry, messages, start_grpcio, unary
from real_cluster import CLUSTER

CALLS = 400  # a round
EIGHT_CARDS = REPO / "sim/nodes/a100x8-nvlink.yaml"


def make_node(source, cards, target):
    """A node file like `source` with so many cards."""
    node = yaml.safe_load(source.read_text())
    card = node["cards"][0]
    node["cards"] = [{**card, "uuid": f"GPU-00000000-0000-4000-8000-{i:012x}", "serial": str(1500000000000 + i),
                      "pci": f"0000:{i + 1:02x}:00.0"} for i in range(cards)]
    for table in ("nvlink", "nvlink_to", "nvlink_switches"):
        node.pop(table, None)
    node["topology"] = [["X" if i == k else "SYS" for k in range(cards)] for i in range(cards)]
    target.write_text(yaml.safe_dump(node, sort_keys=False))
    return target


@contextlib.contextmanager
def simulated(context, folder, node_file):
    """A driver below folder/sim."""
    sim = folder / "sim"
    simctl = [str(context.build / "bin/hami-simctl"), "--dir", str(sim)]
    up = subprocess.run(simctl + ["up", str(node_file)], check=False, capture_output=True, text=True, timeout=60)
    if up.returncode != 0:
        raise RuntimeError(f"hami-simctl up: {up.stderr}")
    try:
        yield sim
    finally:
        subprocess.run(simctl + ["down"], check=False, capture_output=True, timeout=60)


@contextlib.contextmanager
def agent(context, folder, sim, slots):
    """The agent and a registry for it; yields (its process, ms from start to Register, its socket)."""
    plugins = folder / "plugins"
    for d in (plugins, folder / "cdi"):
        d.mkdir(parents=True, exist_ok=True)
    registry = Registry(plugins)
    argv = [str(context.build / "bin/hami-device-plugin"), f"--state-dir={folder}/state", f"--cdi-dir={folder}/cdi",
            f"--kubelet-socket={plugins}/kubelet.sock", f"--pod-resources-socket={folder}/none.sock",
            f"--nvml-library={context.build}/sim/libnvidia-ml.so.1", f"--libvgpu={context.build}/lib/libvgpu.so",
            f"--nvidia-cdi-spec={sim}/cdi/nvidia.json"]
    env = {**os.environ, "HAMI_SIM_DIR": str(sim), "HAMI_VGPU_CORES_PER_DEVICE": str(slots)}
    with open(folder / "agent.log", "ab") as log:
        start = time.monotonic()
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        try:
            came, endpoint = registry.wait()
        except RuntimeError as why:
            raise RuntimeError(f"{why}: " + (folder / "agent.log").read_text()[-2000:]) from why
        yield process, (came - start) * 1000, plugins / endpoint
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        registry.stop()


def first_list(caller):
    """The first message of ListAndWatch: (ms until it is there, parsed; the device IDs)."""
    start = time.perf_counter()
    stream = caller.list_and_watch(messages().Empty(), timeout=60)
    first = next(stream)
    took = (time.perf_counter() - start) * 1000
    stream.cancel()
    return took, [d.ID for d in first.devices]


def memory_of(pid):
    """RSS and private dirty in MiB, and threads."""
    rollup = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return (int(rollup["Rss"].split()[0]) / 1024, int(rollup["Private_Dirty"].split()[0]) / 1024, int(status["Threads"]))


def start_empty_server(context, folder):
    """Our rpc server with an empty handler; None where it was not built."""
    program = next((p for p in (context.build / d / "rpc_empty_server" for d in ("tests", "bin", "tests/bench")) if p.exists()), None)
    if program is None:
        return None, None
    socket = folder / "empty.sock"
    process = subprocess.Popen([str(program), str(socket)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(200):
        if socket.exists():
            return process, socket
        time.sleep(0.02)
    raise RuntimeError("rpc_empty_server makes no socket")


def start_grpc_go(folder):
    """The test cluster's fake plugin, a bare grpc-go server; None where the cluster was never built. (Its process, its socket,
    ms from start to Register)."""
    program = CLUSTER / "bin/fakeplugin"
    if not program.exists():
        return None, None, None
    home = folder / "go"
    home.mkdir()
    (home / "ctl.json").write_text('{"quiet": true}')
    registry = Registry(home)
    start = time.monotonic()
    process = subprocess.Popen([str(program), "-dir", str(home), "-ctl", str(home / "ctl.json"), "-cdi", str(home)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    came, _ = registry.wait()
    registry.stop()
    return process, home / "fake.sock", (came - start) * 1000


def measure_allocate(context, folder, sim):
    ours = "our rpc server, empty handler"
    processes = []
    with agent(context, folder, sim, 10) as (_process, _ms, socket):
        try:
            callers = {"agent": Caller(socket)}
            ids = {"agent": first_list(callers["agent"])[1]}
            for name, start in (("empty", lambda: start_empty_server(context, folder)), ("grpc_go", lambda: start_grpc_go(folder)[:2]),
                                ("grpcio", lambda: (start_grpcio(folder / "py.sock"), folder / "py.sock"))):
                process, path = start()
                if process is not None:
                    processes.append(process)
                    callers[name] = Caller(path)
            # grpc-go's plugin knows its own IDs only; all get a text of about the same length.
            go_ids = [f"g{g}::{s}" for g in range(2) for s in range(4)]
            times = {name: (lambda c=caller, n=name: c.allocate_times_ms(ids.get(n) or (go_ids if n == "grpc_go" else ids["agent"]), CALLS))
                     for name, caller in callers.items()}
            for measure in times.values():
                measure()  # warm
            rounds = interleaved(context.rounds, **times)
            for caller in callers.values():
                caller.close()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(10) if hasattr(process, "join") else process.wait(10)

    def of(name, share):
        return median([percentile(r, share) for r in rounds[name]]) if name in rounds else None
    no_go = None if "grpc_go" in rounds else "the cluster's fake plugin is not built: make test-cluster builds it"
    yield Figure("agent.allocate_p50_ms", "ms", of("agent", 0.5), ours, of("empty", 0.5), "<= peer + 0.1",
                 recorded=RECORDED["allocate_p50"])
    yield Figure("agent.allocate_p99_ms", "ms", of("agent", 0.99), ours, of("empty", 0.99), "<= 2", recorded=RECORDED["allocate_p99"])
    yield Figure("agent.allocate_beside_grpc_go_p50_ms", "ms", of("agent", 0.5), "a bare grpc-go plugin", of("grpc_go", 0.5), why=no_go)
    for share, text in ((0.5, "p50"), (0.99, "p99")):
        yield Figure(f"rpc.unary_{text}_ms", "ms", of("empty", share), "grpcio server", of("grpcio", share))
        yield Figure(f"rpc.unary_grpc_go_{text}_ms", "ms", of("grpc_go", share), ours, of("empty", share), why=no_go)


def serve_list(socket, ids):
    """A grpcio server in this process that answers ListAndWatch with the same devices."""
    pb = messages()
    answer = pb.ListAndWatchResponse()
    for device in ids:
        d = answer.devices.add()
        d.ID, d.health = device, "Healthy"
        d.topology.nodes.add().ID = 0
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    rpc = grpc.unary_stream_rpc_method_handler(lambda _r, _c: iter([answer]), request_deserializer=pb.Empty.FromString,
                                               response_serializer=lambda m: m.SerializeToString())
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {"ListAndWatch": rpc}),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


def measure_list(context, folder):
    node = make_node(EIGHT_CARDS, 16, folder / "node16.yaml")
    with simulated(context, folder, node) as sim, agent(context, folder, sim, 1000) as (_process, _ms, socket):
        caller = Caller(socket)
        count = len(first_list(caller)[1])
        if count != 16000:
            raise RuntimeError(f"{count} devices instead of 16000")
        server = serve_list(folder / "list.sock", first_list(caller)[1])
        peer = Caller(folder / "list.sock")
        rounds = interleaved(context.rounds, ours=lambda: first_list(caller)[0], grpcio=lambda: first_list(peer)[0])
        caller.close()
        peer.close()
        server.stop(None).wait()
    yield Figure("agent.list_16000_ms", "ms", median(rounds["ours"]), "grpcio server, the same devices", median(rounds["grpcio"]))


def figures_of(process, socket):
    """As the kubelet would: its list is read. Then RSS, private dirty, threads."""
    caller = Caller(socket)
    first_list(caller)
    time.sleep(1)
    seen = memory_of(process.pid)
    caller.close()
    return seen


def start_ours(context, home, sim):
    with agent(context, home, sim, 10) as (process, ms, socket):
        return ms, *figures_of(process, socket)


def start_bare(home):
    process, socket, ms = start_grpc_go(home)
    if process is None:
        return None
    try:
        return ms, *figures_of(process, socket)
    finally:
        process.terminate()
        process.wait(10)


# Measured once, 8 GPUs of a fake NVML, on 2 cores: NVIDIA's k8s-device-plugin v0.19.3 (8 devices) and HAMi's v2.10.0 (80
# devices, commit 4707fb02), plain Go builds. HAMi's start is to its node annotation, with its API server beside it.
RECORDED = {
    "rss": {"NVIDIA's plugin": 20.8, "HAMi's": 40.7},
    "threads": {"NVIDIA's plugin": 8, "HAMi's": 8},
    "start": {"HAMi's": 83},
    "calls": {"HAMi's": 8},
    "allocate_p50": {"NVIDIA's plugin": 0.19},
    "allocate_p99": {"NVIDIA's plugin": 2.0},
}


def measure_start(context, folder, sim):
    ours, bare = [], []
    for i in range(context.rounds):
        for name, out, measure in (("ours", ours, lambda home: start_ours(context, home, sim)), ("bare", bare, start_bare)):
            home = folder / f"{name}{i}"
            home.mkdir()
            out.append(measure(home))
    peer = "a bare grpc-go plugin" if None not in bare else None

    def figure(name, unit, column, goal, recorded=None):
        beside = median([b[column] for b in bare]) if peer else None
        return Figure(name, unit, median([o[column] for o in ours]), peer, beside, goal, recorded=RECORDED.get(recorded))
    yield figure("agent.start_to_registered_ms", "ms", 0, 100, "start")
    yield figure("agent.rss_mib", "MiB", 1, 14, "rss")
    yield figure("agent.private_dirty_mib", "MiB", 2, 3)
    yield figure("agent.threads", "threads", 3, 2, "threads")


def measure(context):
    for name in ("a", "l", "s"):
        (context.folder / name).mkdir()
    with simulated(context, context.folder / "a", EIGHT_CARDS) as sim:
        yield from measure_allocate(context, context.folder / "a", sim)
        yield from measure_start(context, context.folder / "s", sim)
    yield from measure_list(context, context.folder / "l")
