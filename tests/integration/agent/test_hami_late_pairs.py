"""Two pods of equal counts and different memory, bound at once, 1,000 times: each container sees its own. Several nodes side
by side, each with a kubelet, an API server and an agent. HAMI_LATE_ROUNDS and HAMI_LATE_SEED change number and dice."""
import concurrent.futures
import contextlib
import json
import os
import random
import time

import pytest

pytest.register_assert_rewrite("node.hami", "node.late")

from node.base import BUILD, MIB, PLAIN, Pod, wait_until  # noqa: E402
from node.late import late_node  # noqa: E402
from node.scenarios import PROBE  # noqa: E402

NODES = 4
ROUNDS = int(os.environ.get("HAMI_LATE_ROUNDS", "1000" if PLAIN == BUILD else "100"))
SEED = int(os.environ.get("HAMI_LATE_SEED", str(time.time_ns())))


def run_to_its_end(node, manifest, after_s):
    time.sleep(after_s)
    answer = node.ask("run", wait="done", pod=manifest)
    assert answer["ok"], (answer, node.status()["pods"])


def seen(node, name):
    (line,) = [line for line in (node.dir / f"logs/default_{name}_c.log").read_text().splitlines() if '"devices"' in line]
    return {d["uuid"]: d["total"] // MIB for d in json.loads(line)["devices"]}


def one_round(node, number, cards, dice, pool):
    """The scheduler's order, the kubelet's and the API server's are three. One of eight pairs has a pod of which the agent
    hears when the kubelet wants to start it already."""
    names = [f"r{number}-a", f"r{number}-b"]
    least = dice.randrange(100, 7000)
    want = dict(zip(names, [(dice.choice(cards), least), (dice.choice(cards), least + dice.randrange(1, 500))]))
    manifests = {name: node.bind(Pod.one(name, [PROBE, "info"]), [[(*want[name], 0)]]) for name in dice.sample(names, 2)}
    late = dice.choice(names) if dice.random() < 1 / 8 else None
    if late:
        node.api.delete("pods", "default", late)
    running = [pool.submit(run_to_its_end, node, manifests[name], dice.choice((0, 0, 0.001, 0.003, 0.01))) for name in dice.sample(names, 2)]
    if late:
        time.sleep(dice.choice((0, 0.002, 0.01, 0.03)))
        node.api.put_tree("pods", "default", manifests[late])
    for one in running:
        one.result()
    for name, (card, mib) in want.items():
        assert seen(node, name) == {card: mib}, f"round {number}, {name}: {want}"
    node.delete(*names)


def rounds(node, numbers):
    cards = node.uuids()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number in numbers:
            one_round(node, number, cards, random.Random(SEED + number), pool)
    wait_until("nothing is left", 60, node.no_leftovers)
    return len(numbers)


def test_two_pods_bound_at_once_are_never_swapped():
    print(f"seed {SEED}")
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(NODES) as pool:
        nodes = [stack.enter_context(contextlib.contextmanager(late_node)()) for _ in range(NODES)]
        work = [pool.submit(rounds, node, range(i, ROUNDS, NODES)) for i, node in enumerate(nodes)]
        assert sum(w.result() for w in work) == ROUNDS
