"""Three replicas whose leaders are killed, stopped and ended at random, while pods are placed and ended all the time: no
card is sold twice, and nothing is lost. For SCHED_SOAK_SECONDS (two minutes) of faults they elect one by their own Lease, for
half as long they follow kube-scheduler's (make soak: an hour in all). CHAOS_SEED changes the dice. A failure tells the dice,
what failed, pods, cards and Bindings; all of it, with the logs, is kept in the build's replicas-SEED-BY/."""
import contextlib
import os
import statistics
import time

import pytest

from replicas_oracle import Recount
from replicas_peer import Client, World
from replicas_trouble import Trouble
from sched_peer import wait_until

SECONDS = float(os.environ.get("SCHED_SOAK_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))
SHARE = {"lease": 1, "follow": 0.5}  # of SECONDS
ROUND = 30  # seconds until what is free is counted anew
BETWEEN = 5  # pods placed after each fault, before the next


class Told(AssertionError):
    pass


@contextlib.contextmanager
def telling(world):
    """What fails, also a wait, is told with the dice, and with what the oracle and the replicas know."""
    try:
        yield
    except Told:
        raise
    except Exception as e:
        causes, at = [], e
        while at is not None:
            causes.append(f"{type(at).__name__}: {at}")
            at = None if isinstance(at, Told) else at.__cause__ or at.__context__
        raise Told(world.report("\nbefore that: ".join(causes))) from e


def held(name, text, node="n1", memory=20000, count=1, cores=0):
    limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    return {"metadata": {"name": name, "annotations": {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": text}},
            "spec": {"nodeName": node, "containers": [{"resources": {"limits": limits}}]}, "status": {"phase": "Running"}}


@pytest.mark.parametrize("memory, cores, pods, sold_twice", [
    (20000, 0, 2, False), (20000, 0, 3, True), (100, 50, 2, False), (100, 50, 3, True), (100, 0, 10, False), (100, 0, 11, True)])
def test_the_recount_sees_a_double_sale(memory, cores, pods, sold_twice):
    recount = Recount({"GPU-n1-0": "n1", "GPU-n1-1": "n1"})
    all_pods = [held(f"p{i}", f"GPU-n1-0,NVIDIA,{memory},{cores}:;") for i in range(pods)]
    assert bool(list(recount.sold_twice(all_pods))) == sold_twice
    all_pods[0]["status"]["phase"] = "Succeeded"
    assert not list(recount.sold_twice(all_pods))


@pytest.mark.parametrize("text, right", [
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-1,NVIDIA,20000,0:;", True),
    ("GPU-n1-0,NVIDIA,20000,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-0,NVIDIA,20000,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n1-1,NVIDIA,19999,0:;", False),
    ("GPU-n1-0,NVIDIA,20000,0:GPU-n2-0,NVIDIA,20000,0:;", False)])
def test_the_recount_sees_a_wrong_grant(text, right):
    recount = Recount({"GPU-n1-0": "n1", "GPU-n1-1": "n1", "GPU-n2-0": "n2"})
    assert (recount.wrong_grant(held("p", text, count=2)) is None) == right


def wrong_so_far(world, clients):
    return [*world.api.wrong[:1], *(w for c in clients for w in (*c.wrong[:1], c.broke) if w)]


def check(world, clients=()):
    wrong = wrong_so_far(world, clients)
    if wrong:  # no assert: pytest would tell it twice
        raise AssertionError("\n".join(wrong))


def with_clients(world, clients, is_over, trouble, waits):
    """Faults until then; after each one pods are placed again."""
    for c in clients:
        c.start()
    try:
        while not is_over():
            trouble.one()
            begun, before = time.monotonic(), world.api.bound
            try:
                wait_until(f"{BETWEEN} pods are placed after {trouble.done}", 120, lambda: world.api.bound >= before + BETWEEN
                           or wrong_so_far(world, clients))
            except AssertionError as e:
                raise AssertionError(f"{e}; last heard: {[c.heard for c in clients]}") from None
            waits.append(time.monotonic() - begun)
            world.api.trim_history(5000)
            check(world, clients)
            time.sleep(world.dice.random())
    finally:
        for c in clients:
            c.stopping.set()
        for c in clients:
            c.join(60)
    assert not [c for c in clients if c.is_alive()], "a client waits for an answer that does not come"
    check(world, clients)


def in_trouble(world):
    """For its share of the time, and until each kind of fault has come."""
    trouble, waits, end, rounds = Trouble(world), [], time.monotonic() + SECONDS * SHARE[world.by], 0
    mine = [[] for _ in range(3)]

    def is_over():
        return not trouble.first and time.monotonic() > end

    while not is_over():
        rounds += 1
        clients = [Client(world, f"{rounds}-{i}", SEED + 100 * rounds + i) for i in range(3)]
        for c, pods in zip(clients, mine):
            c.mine = pods
        until = time.monotonic() + ROUND
        with_clients(world, clients, lambda: is_over() or time.monotonic() > until, trouble, waits)
        world.check_nothing_is_lost()
        check(world)
    print(f"\nCHAOS_SEED={SEED}, by {world.by}: {sum(trouble.done.values())} faults {trouble.done}, 410 of {dict(world.api.expired)}, "
          f"{world.keys.made} keys, {world.api.doubted} pods doubted, {world.api.bound} pods bound, {rounds} recounts of what is free; {BETWEEN} pods placed after a "
          f"fault in {statistics.median(waits):.1f} s, {max(waits):.1f} s at most")
    return trouble


@pytest.mark.parametrize("by", ["lease", "follow"])
def test_no_double_sale_and_nothing_lost(build, short_tmp, by):
    world = World(build, short_tmp, SEED, by)
    with telling(world), contextlib.closing(world), telling(world):
        world.up()
        trouble = in_trouble(world)
        assert trouble.sure <= trouble.done.keys()
        # What the faults were to bring about came about.
        assert world.api.expired["watch"] and world.api.expired["page"]
        assert world.keys.made == 1 + trouble.done.get("change_keys", 0)
