"""What the size of the cluster costs: /filter of 100 named nodes, and of all of them, at 100, 1,000, 5,000 and 20,000 nodes with
8 cards and 8 shares each, the first sync and the memory; and the API calls that a pod takes from /filter to bound."""
import json
import math
import random
import time

from asking import Cluster, Scheduler, filter_request, gpu, kubeconfig_of, latencies_ms, pod
from figures import Figure, median
from fixed_lists import CARDS, FixedLists, node_name

SIZES = (100, 1000, 5000, 20000)
NAMED, PODS = 100, 200
HAMI_CALLS = 9  # recorded of HAMi v2.10.0 in the API server's audit log: /filter 2, /bind 7


def request(number, names):
    return filter_request(pod(f"p{number}", **gpu(2000)), names)


def measure_size(context, folder, nodes):
    """Medians of NAMED nodes, and of all; seconds from start to ready, and the resident size then."""
    random_ = random.Random(nodes)
    with FixedLists.of_size(nodes, CARDS * nodes, CARDS * nodes) as lists, Scheduler(context.build, folder) as it:
        kubeconfig = kubeconfig_of(lists, folder)
        begun = time.perf_counter()
        it.start(kubeconfig).wait_ready()
        ready_s, rss = time.perf_counter() - begun, it.rss_kib() / 1024
        every = [node_name(i) for i in range(nodes)]
        few = [request(i, random_.sample(every, NAMED)) for i in range(20)]
        whole = [request(i, every) for i in range(5)]
        if not it.filter(pod("probe", **gpu(2000)), every)["NodeNames"]:
            raise RuntimeError("it fits nowhere")
        with it.connect() as sock:
            latencies_ms(sock, few, len(few))
            took = [(median(latencies_ms(sock, few, 100)), median(latencies_ms(sock, whole, 10))) for _ in range(context.rounds)]
        return *(median(values) for values in zip(*took)), ready_s, rss


def slope(points):
    """Of log y over log x, by least squares: 1 is in proportion."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mx, my = (sum(v[i] for v in logs) / len(logs) for i in (0, 1))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


def calls_per_pod(context, folder):
    """Counted by the API server: all but watches, from the first /filter to the last Binding."""
    cluster, it = Cluster(folder), Scheduler(context.build, folder)
    try:
        for i in range(20):
            cluster.node(f"n{i}", cards=CARDS, late=True)
        it.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
        with cluster.api.lock:
            cluster.api.requests.clear()
        for i in range(PODS):
            tree = cluster.api.put_tree("pods", "default", {**pod(f"p{i}", **gpu(4000)), "status": {"phase": "Pending"}})
            node, = it.filter(tree, [f"n{k}" for k in range(20)])["NodeNames"]
            body = {"PodName": f"p{i}", "PodNamespace": "default", "PodUID": tree["metadata"]["uid"], "Node": node}
            answer = json.loads(it.ask("POST", "/bind", json.dumps(body).encode())[2])
            if answer["Error"]:
                raise RuntimeError(answer["Error"])
        with cluster.api.lock:
            return len([r for r in cluster.api.requests if r.query.get("watch") != "1"]) / PODS
    finally:
        it.end()
        cluster.api.down()


def measure(context):
    few, whole, sync, memory = {}, {}, {}, {}
    for nodes in SIZES:
        folder = context.folder / f"growth{nodes}"
        folder.mkdir()
        few[nodes], whole[nodes], sync[nodes], memory[nodes] = measure_size(context, folder, nodes)
        yield Figure(f"sched.filter_{NAMED}_of_{nodes}_p50", "ms", few[nodes])
        yield Figure(f"sched.filter_all_of_{nodes}_p50", "ms", whole[nodes])
        yield Figure(f"sched.sync_of_{nodes}_s", "s", sync[nodes])
        yield Figure(f"sched.rss_of_{nodes}", "MiB", memory[nodes])
    yield Figure("sched.filter_growth_named", "slope", slope(few.items()), goal="<= 0.3", why=f"{NAMED} named: 0 is what a lookup costs")
    yield Figure("sched.filter_growth_all", "slope", slope(whole.items()), goal="<= 1.1", why="all named: 1 is in proportion")
    yield Figure("sched.sync_growth", "slope", slope(sync.items()), why="from start to ready: 1 is in proportion")
    yield Figure("sched.rss_growth", "slope", slope(memory.items()), why="1 is in proportion")
    folder = context.folder / "calls"
    folder.mkdir()
    yield Figure("sched.api_calls_per_pod", "calls", calls_per_pod(context, folder), "HAMi v2.10, recorded", HAMI_CALLS, "<= 1")
