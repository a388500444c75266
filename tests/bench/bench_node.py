"""The agent in mode hami, on a node of hami-simkubelet with a stand-in API server: what a pod costs that server, and what the
agent weighs with its client."""
import sys
import time

from bench_agent import RECORDED, memory_of
from figures import Figure, median
from grpc_peers import REPO

sys.path.insert(0, str(REPO / "tests"))
from node.base import Pod  # noqa: E402
from node.hami import HamiNode, serve_hami  # noqa: E402

PODS = 40


def place_and_count(node):
    """Requests to the API server for so many pods, from their binding until each is marked as done."""
    cards = node.uuids()
    names = [f"p{i}" for i in range(PODS)]
    before = len(node.api.requests)
    start = time.monotonic()
    for i, name in enumerate(names):
        node.place(Pod.one(name, ["/bin/sleep", "1000"]), [[(cards[i % len(cards)], 1000 + i, 1)]])
    node.wait_running(names)
    seconds = time.monotonic() - start
    for name in names:
        node.wait_finished(name, 30)
    time.sleep(1)  # whatever came too late would be counted
    asked = [r for r in node.api.requests[before:] if "watch" not in r.path]
    node.delete(*names)
    return len(asked) / PODS, seconds


def measure(context):
    node = HamiNode(context.folder / "n", card_file="a100x8-nvlink.yaml")
    try:
        start = time.monotonic()
        serve_hami(node)
        print(f"bench: mode hami serves after {time.monotonic() - start:.1f} s", flush=True)
        time.sleep(2)
        size = memory_of(node.agent_pid())
        calls = [place_and_count(node)[0] for _ in range(min(context.rounds, 5))]
        after = memory_of(node.agent_pid())
    finally:
        node.down()
    yield Figure("agent.hami_api_calls_per_pod", "calls", median(calls), goal=1, recorded=RECORDED["calls"])
    yield Figure("agent.hami_rss_mib", "MiB", size[0], goal=14, recorded=RECORDED["rss"])
    yield Figure("agent.hami_rss_after_pods_mib", "MiB", after[0])
    yield Figure("agent.hami_threads", "threads", size[2], goal=2, recorded=RECORDED["threads"])
