"""/filter of 5,000 nodes with 8 cards each, every card in use, beside /healthz: over one connection that is kept. A third of
the pods fits on one card of one of the named nodes, a third nowhere (with each node's reasons), a third has several
containers."""
import json
import pathlib
import random
import re
import sys
import time

from figures import Figure, median, percentile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration/sched"), str(TESTS / "integration")]

from sched_peer import Cluster, Scheduler, gpu, pod  # noqa: E402

NODES, CARDS, MEMORY, PODS, CALLS = 5000, 8, 81920, 10000, 1000
PEER = "/healthz in the same run"
HAMI_CPU_MS = 287  # recorded of HAMi v2.10.0: 1,000 nodes, 10,000 pods, 500 named


def node_name(i):
    return f"node-{i:05d}"


def fill(cluster, random_):
    """On each node one card has 20,000 MiB left, the others 4,000 at most."""
    for i in range(NODES):
        cluster.node(node_name(i), cards=CARDS, memory=MEMORY)
    for i in range(PODS):
        node, free = node_name(i % NODES), random_.randrange(CARDS)
        shares = [f"GPU-{node}-{k},NVIDIA,{30000 if k == free and i < NODES else 39000},{random_.choice((0, 10))}"
                  for k in range(CARDS)]
        cluster.held(f"held{i}", node, ":".join(shares) + ":;")


def request(kind, uid, names):
    a_pod = pod(kind, **gpu(2000 if kind == "fits" else 50000))
    a_pod["metadata"]["uid"] = uid
    if kind == "several":
        limits = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "500"}
        a_pod["spec"]["containers"] = [{"name": f"c{k}", "resources": {"limits": limits}} for k in range(3)]
    body = json.dumps({"Pod": a_pod, "Nodes": None, "NodeNames": names}).encode()
    return f"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def requests(named, random_):
    """Few pods, asked for again and again: a pod that is asked for anew gives up what it was promised."""
    every = range(NODES)
    return [request(kind, f"{kind}-{i}", [node_name(k) for k in (random_.sample(every, named) if named < NODES else every)])
            for i in range(20) for kind in ("fits", "nowhere", "several")]


def latencies_ms(sock, texts, calls):
    took = []
    for i in range(calls):
        begun = time.perf_counter()
        sock.sendall(texts[i % len(texts)])
        head, _, body = sock.recv(1 << 20).partition(b"\r\n\r\n")
        left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
        while left > 0:
            left -= len(sock.recv(1 << 20))
        took.append(1000 * (time.perf_counter() - begun))
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head)
    return took


def cpu_ms(scheduler):
    with open(f"/proc/{scheduler.process.pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return 10 * (int(fields[11]) + int(fields[12]))


def measure(context):
    folder = context.folder / "filter"
    folder.mkdir()
    random_ = random.Random(1)
    cluster, scheduler = Cluster(folder), Scheduler(context.build, folder)
    try:
        fill(cluster, random_)
        scheduler.start(f"--kubeconfig={cluster.kubeconfig}")
        scheduler.wait_ready()
        cluster.api.log.clear()  # its watchers' threads look through all of it
        bare, asked, cpu = [], {500: [], NODES: []}, []
        with scheduler.connect() as sock:
            for _ in range(context.rounds):
                bare.append(percentile(latencies_ms(sock, [b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"], CALLS), 0.99))
                for named, all_p99 in asked.items():
                    texts, before = requests(named, random_), cpu_ms(scheduler)
                    calls = CALLS if named == 500 else CALLS // 5
                    all_p99.append(percentile(latencies_ms(sock, texts, calls), 0.99))
                    if named == 500:
                        cpu.append((cpu_ms(scheduler) - before) / calls)
        yield Figure("sched.filter_500_of_5000_p99", "ms", median(asked[500]), PEER, median(bare), "<= peer + 2")
        yield Figure("sched.filter_5000_of_5000_p99", "ms", median(asked[NODES]), PEER, median(bare), "<= peer + 10")
        yield Figure("sched.filter_500_cpu", "ms", median(cpu), "HAMi v2.10, of 1,000 nodes, recorded", HAMI_CPU_MS, "<= 0.01 x peer")
        yield Figure("sched.filter_rss", "MiB", scheduler.rss_kib() / 1024, None, None, "<= 500")
    finally:
        scheduler.end()
        cluster.api.down()
