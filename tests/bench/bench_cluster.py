"""Forty pods to one node of the real cluster, from binding to running: with a card each, and the same pods without, in turns.
The agent is deployed as deploy/examples/hami.yaml; the test binds, so that no scheduler is measured."""
import time

import real_cluster  # the first: it leads to node
from figures import Figure, interleaved, median
from node.base import Pod
from node.hami_real import HamiDeployed, serve_hami

PODS, PEER = 40, "the same pods without devices"
GOAL = "<= 1.1 x peer"


def running_seconds(node, kind):
    cards = node.uuids()
    pods = [Pod.one(f"{kind}{i}", ["/bin/sleep", "1000"], vgpu=int(kind == "hami")) for i in range(PODS)]
    uids = [node.submit(p) for p in pods]
    start = time.monotonic()
    for i, (pod, uid) in enumerate(zip(pods, uids)):
        node.bind(pod.name, uid, [[(cards[i % len(cards)], 1000, 1)]] if kind == "hami" else None)
    node.wait_phases([p.name for p in pods], "Running", every=0.2)
    seconds = time.monotonic() - start
    node.delete(*[p.name for p in pods])
    return seconds


def measure(context):
    why = real_cluster.why_not("kubelet")
    if why:
        yield Figure("agent.forty_pods_to_running_s", "s", None, PEER, None, GOAL, why=why)
        return
    with real_cluster.alone():
        node = HamiDeployed(context.folder / "c", "hami.yaml", card_file="a100x8-nvlink.yaml")
        try:
            serve_hami(node, 8)
            running_seconds(node, "bare")  # images and caches are warm then
            seconds = interleaved(min(context.rounds, 5), hami=lambda: running_seconds(node, "hami"), bare=lambda: running_seconds(node, "bare"))
        finally:
            node.down()
    yield Figure("agent.forty_pods_to_running_s", "s", median(seconds["hami"]), PEER, median(seconds["bare"]), GOAL)
