"""The real agent beside containers that share one card of the simulated node: its samples keep each near its share, policy
default is open to who is alone, priority 0 comes first. How near exactly: tests/bench/bench_shares.py."""
import pathlib
import signal
import time

import pytest

from kubelet_peer import Agent, Kubelet, number_of, wait_until
from region_words import ALPHA_AT, ALPHA_UNTIL_AT, HOLD_AT, OPEN_AT, word
from shares import BUILD, MS
from steps import release
from wall_time import finish, shares, shares_meanwhile, start

SLOTS = 10


class Cluster:
    """Kubelet and agent on a simulated node, every card cut in SLOTS."""

    def __init__(self, node, folder, container_of):
        self.node, self.container_of, self.used = node, container_of, 0
        self.kubelet = Kubelet(folder / "k")
        self.agent = Agent(BUILD, folder, self.kubelet)
        self.kubelet.start()
        self.run_agent()

    def run_agent(self):
        self.agent.start(f"--nvml-library={BUILD / 'sim/libnvidia-ml.so.1'}", f"--cores-per-device={SLOTS}",
                         env={"HAMI_SIM_DIR": self.node.env["HAMI_SIM_DIR"]}.items())
        self.kubelet.wait_registered()

    def container(self, slots, *lines):
        ids = [f"{self.node.cards[0]}::{self.used + n}" for n in range(slots)]
        self.used += slots
        pod = f"pod-{self.used}"
        number = number_of(self.kubelet.admit(pod, "c", ids))
        self.kubelet.plugin.pre_start(ids)
        made = self.container_of(self.node, pathlib.Path(self.agent.state) / "alloc" / str(number))
        if lines:
            made.limit(*lines)
        return made

    def end(self):
        self.agent.end()
        self.kubelet.stop()


@pytest.fixture
def cluster(node_of, short_tmp, agent_container):
    it = Cluster(node_of("sm20.yaml"), short_tmp, agent_container)
    yield it
    it.end()


def ahead(container, at):
    return word(container.region, at) > time.monotonic_ns()


@pytest.mark.parametrize("slots, works", [
    ((3, 7), (([MS], 20), ([MS], 20))), ((3, 7), (([10 * MS], 10), ([MS // 5], 50))),
    ((1, 2, 7), (([MS], 7), ([5 * MS], 5), ([MS], 11)))])
def test_shares_of_one_card(cluster, slots, works):
    """Hungry containers, policy default: it is contention. A loaded machine is late to launch, so the best of four; without
    samples 30 and 70 would be 23 and 57."""
    containers = [cluster.container(n) for n in slots]
    want = [n * 100 / SLOTS for n in slots]
    for _ in range(4):
        children = [start(c, lengths, sync, 5.3) for c, (lengths, sync) in zip(containers, works)]
        got = shares(cluster.node, children, warm=2.0, seconds=3.0)
        if all(0.88 * w <= g <= w + 5 for g, w in zip(got, want)):
            assert all(0 < word(c.region, ALPHA_AT) < 65536 for c in containers)
            return
    assert got == want


def test_unlimited_beside_limited_gets_the_rest(cluster):
    limited, free = cluster.container(3), cluster.container(7, "policy=disable")
    for _ in range(3):
        children = [start(c, [MS], 20, 5.3) for c in (limited, free)]
        got = shares(cluster.node, children, warm=2.0, seconds=3.0)
        if abs(got[0] - 30) <= 5 and got[1] >= 60:
            return
    assert got == [30, 70]


def test_default_is_open_to_who_is_alone_and_closed_when_another_comes(cluster):
    first, second = cluster.container(3), cluster.container(7)
    wait_until("the idle card to be open", 5, lambda: ahead(first, OPEN_AT) and ahead(second, OPEN_AT))
    alone = start(first, [5 * MS], 10, 8)
    release(alone)
    got, = shares_meanwhile(cluster.node, [alone], 0.7, 1.0)
    assert got >= 60, "alone: not limited"
    assert ahead(first, OPEN_AT)
    wait_until("the other to be closed", 5, lambda: not ahead(second, OPEN_AT))
    other = start(second, [5 * MS], 10, 3)
    release(other)
    wait_until("contention to be seen", 3, lambda: not ahead(first, OPEN_AT))
    got, _ = shares_meanwhile(cluster.node, [alone, other], 1.0, 1.5)
    assert got <= 40, "limited beside another"
    finish(other)
    wait_until("to be open again", 5, lambda: ahead(first, OPEN_AT))
    finish(alone)


def test_force_is_never_open(cluster):
    container = cluster.container(3, "policy=force")
    other = cluster.container(1)
    wait_until("the agent to have come by", 5, lambda: ahead(other, OPEN_AT))
    got, = shares(cluster.node, [start(container, [5 * MS], 10, 3.2)])
    assert got <= 34 and not ahead(container, OPEN_AT)


def test_priority_zero_comes_first(cluster):
    """Who waits is let go when the other pauses."""
    high, low = cluster.container(5, "priority=0"), cluster.container(5, "priority=1", "policy=force")
    lower = start(low, [2 * MS], 10, 9)
    release(lower)
    got, = shares_meanwhile(cluster.node, [lower], 0.7, 1.0)
    assert got >= 30
    upper = start(high, [2 * MS], 10, 3.5)
    release(upper)
    wait_until("the lower one to be held", 3, lambda: ahead(low, HOLD_AT))
    held, first = shares_meanwhile(cluster.node, [lower, upper], 0.3, 1.5)
    assert held <= 3 and first >= 60 and not ahead(high, HOLD_AT), "held, and the other unlimited by it"
    finish(upper)
    wait_until("the lower one to be let go", 5, lambda: not ahead(low, HOLD_AT))
    got, = shares_meanwhile(cluster.node, [lower], 0.3, 1.0)
    assert got >= 30
    finish(lower)


def test_a_driver_that_hangs_limits_nobody_for_long_and_is_met_again(cluster):
    """What was written runs out: open to nobody, held by nobody. Allocate goes on meanwhile."""
    first = cluster.container(3)
    wait_until("the idle card to be open", 5, lambda: ahead(first, OPEN_AT))
    cluster.node.simctl("gpu", "0", "nvml-hang", "60")
    wait_until("the word to run out", 8, lambda: not ahead(first, OPEN_AT))
    second = cluster.container(2)
    cluster.node.simctl("gpu", "0", "nvml-hang", "0")
    wait_until("both to be open", 20, lambda: ahead(first, OPEN_AT) and ahead(second, OPEN_AT))


def test_a_driver_that_is_loaded_anew_is_met_again(cluster):
    first = cluster.container(3)
    wait_until("the idle card to be open", 5, lambda: ahead(first, OPEN_AT))
    cluster.node.simctl("driver-reload", "--down-ms=2000")
    wait_until("to be closed while there is no driver", 5, lambda: not ahead(first, OPEN_AT))
    wait_until("to be open again", 20, lambda: ahead(first, OPEN_AT))
    child = start(first, [5 * MS], 10, 3.2)
    release(child)
    got, = shares_meanwhile(cluster.node, [child], 0.7, 1.0)
    finish(child)
    assert got >= 60


def test_an_agent_that_ends_leaves_nothing_that_lasts(cluster):
    """What it wrote runs out; the next one goes on."""
    first, second = cluster.container(3), cluster.container(7)
    children = [start(c, [MS], 20, 25) for c in (first, second)]
    release(*children)
    wait_until("a correction", 10, lambda: word(first.region, ALPHA_AT) not in (0, 65536))
    cluster.agent.stop(signal.SIGKILL)
    until = word(first.region, ALPHA_UNTIL_AT)
    assert 0 < until - time.monotonic_ns() < 3.1e9
    time.sleep(0.5)
    assert word(first.region, ALPHA_UNTIL_AT) == until and not ahead(first, OPEN_AT)
    cluster.run_agent()
    wait_until("the next agent's correction", 10, lambda: word(first.region, ALPHA_UNTIL_AT) > until + 10**9)
    for child in children:
        child.kill()
        child.communicate()
