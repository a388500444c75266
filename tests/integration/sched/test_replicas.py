"""Three replicas whose leaders are killed, stopped and ended at random, while pods are placed and ended all the time: no
card is sold twice, and nothing is lost. SCHED_SOAK_SECONDS and CHAOS_SEED change the length and the dice (make soak: an
hour)."""
import os
import statistics
import time

import pytest

from replicas_peer import Client, Recount, Trouble, World
from sched_peer import wait_until

SECONDS = float(os.environ.get("SCHED_SOAK_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))
BETWEEN = 5  # pods placed after each fault, before the next


@pytest.fixture
def world(build, short_tmp):
    it = World(build, short_tmp, SEED)
    yield it
    it.down()


def held(name, text, node="n1", memory=20000, count=1, cores=0):
    limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    return {"metadata": {"name": name, "annotations": {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": text}},
            "spec": {"nodeName": node, "containers": [{"resources": {"limits": limits}}]}, "status": {"phase": "Running"}}


@pytest.mark.parametrize("memory, cores, pods, sold_twice", [
    (20000, 0, 2, False), (20000, 0, 3, True), (100, 50, 2, False), (100, 50, 3, True), (100, 0, 10, False), (100, 0, 11, True)])
def test_the_recount_sees_a_double_sale(memory, cores, pods, sold_twice):
    recount = Recount({"GPU-n1-0": "n1", "GPU-n1-1": "n1"})
    all_pods = [held(f"p{i}", f"GPU-n1-0,NVIDIA,{memory},{cores}:;") for i in range(pods)]
    assert bool(list(recount.faults(all_pods))) == sold_twice
    all_pods[0]["status"]["phase"] = "Succeeded"
    assert not list(recount.faults(all_pods))


@pytest.mark.parametrize("text, right", [
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-1,NVIDIA,20000,0:;", True),
    ("GPU-n1-0,NVIDIA,20000,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-0,NVIDIA,20000,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-1,NVIDIA,19999,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n2-0,NVIDIA,20000,0:;", False)])
def test_the_recount_sees_a_wrong_grant(text, right):
    recount = Recount({"GPU-n1-0": "n1", "GPU-n1-1": "n1", "GPU-n2-0": "n2"})
    assert (recount.wrong_grant(held("p", text, count=2)) is None) == right


def with_clients(world, clients, seconds, trouble, waits):
    """Faults for so long; after each one pods are placed again."""
    for c in clients:
        c.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            trouble.one()
            begun, before = time.monotonic(), world.api.bound
            try:
                wait_until(f"{BETWEEN} pods are placed after {trouble.done}", 120, lambda: world.api.bound >= before + BETWEEN
                           or world.api.wrong or any(c.broke or c.wrong for c in clients))
            except AssertionError as e:
                raise AssertionError(f"{e}; last heard: {[c.heard for c in clients]}") from None
            waits.append(time.monotonic() - begun)
            world.api.trim_history(5000)
            assert not world.api.wrong, world.api.wrong[0]
            assert not [c.wrong or c.broke for c in clients if c.wrong or c.broke]
            time.sleep(world.dice.random())
    finally:
        for c in clients:
            c.stopping.set()
        for c in clients:
            c.join(60)
    assert not [c.broke for c in clients if c.broke]


def test_no_double_sale_and_nothing_lost(world):
    print(f"seed {SEED}")
    trouble, waits, end, rounds = Trouble(world), [], time.monotonic() + SECONDS, 0
    mine = [[] for _ in range(3)]
    while time.monotonic() < end:
        rounds += 1
        clients = [Client(world, f"{rounds}-{i}", SEED + 100 * rounds + i) for i in range(3)]
        for c, pods in zip(clients, mine):
            c.mine = pods
        with_clients(world, clients, min(30, end - time.monotonic()), trouble, waits)
        world.check_nothing_is_lost()
        assert not world.api.wrong, world.api.wrong[0]
    print(f"{sum(trouble.done.values())} faults {trouble.done}, {world.api.bound} pods bound, {rounds} recounts of what is free; "
          f"{BETWEEN} pods placed after a fault in {statistics.median(waits):.1f} s, {max(waits):.1f} s at most")
