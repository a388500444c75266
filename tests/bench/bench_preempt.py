"""/preempt: 5,000 nodes with 8 cards, all full of two pods each; a pod of higher priority needs one of them gone, and
kube-scheduler asks about 500 nodes, and about all, with no victim of its own."""
import json
import random

from asking import Scheduler, ask, gpu, kubeconfig_of, pod, post
from bench_filter import NODES, full_cluster
from figures import Figure, median, percentile
from fixed_lists import node_name

NAMED, CALLS = (500, NODES), 30


def request(named, random_):
    urgent = pod("urgent", **gpu(41000))
    urgent["spec"]["priority"] = 2000
    nodes = {node_name(i): {"Pods": [], "NumPDBViolations": 0} for i in random_.sample(range(NODES), named)}
    return post("/preempt", {"Pod": urgent, "NodeNameToVictims": None, "NodeNameToMetaVictims": nodes})


def timed(sock, text, named):
    took, body = ask(sock, text)
    victims = json.loads(body)["NodeNameToMetaVictims"]
    if len(victims) != named or any(len(v["Pods"]) != 1 for v in victims.values()):
        raise RuntimeError(f"{len(victims)} of {named} nodes: {body[:300]}")
    return took


def measure(context):
    random_ = random.Random(3)
    with full_cluster() as lists, Scheduler(context.build, context.folder) as it:
        it.start(kubeconfig_of(lists, context.folder)).wait_ready()
        with it.connect() as sock:
            for named in NAMED:
                rounds = []
                for _ in range(context.rounds):
                    text = request(named, random_)
                    rounds.append([timed(sock, text, named) for _ in range(CALLS)])
                yield Figure(f"sched.preempt_{named}_of_{NODES}_p50", "ms", median([percentile(r, 0.5) for r in rounds]))
                yield Figure(f"sched.preempt_{named}_of_{NODES}_p99", "ms", median([percentile(r, 0.99) for r in rounds]))
