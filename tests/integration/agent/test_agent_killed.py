"""The agent dies at each change of a file that it makes, one after the other: while it starts, while a container starts (in
Allocate and in PreStart), while it cleans up. The one that comes after it goes on; every container starts with its own
limits, and nothing is left. tests/integration/agent/kill_at.c is what kills it."""
import concurrent.futures
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

pytest.register_assert_rewrite("node.hami", "node.late")

from node.base import BUILD, PLAIN, Pod, wait_until  # noqa: E402
from node.classic import ClassicNode  # noqa: E402
from node.late import LateNode, check  # noqa: E402
from node.scenarios import hold  # noqa: E402

STEP = 1 if PLAIN == BUILD else 3  # with sanitizers each start takes a while
MANY = 60  # pods of a card: all stay until the end, so that a start changes what belongs to it only


class Mortal:
    """Of a node: its agent, which dies at the n-th change of a file."""

    def __init__(self, node):
        self.node, self.at = node, node.folder / "kill_at"
        self.seen = self.armed = 0

    def start(self, fast=1):
        libraries = ["libkill_at.so", *(["libfast_clock.so"] if fast > 1 else [])]
        self.node.start_agent(env={
            "LD_PRELOAD": ":".join(f"{BUILD}/tests/{name}" for name in libraries), "KILL_AT": str(self.at), "FAST_CLOCK": str(fast),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})

    def arm(self, n):
        aside = self.at.with_suffix(".new")
        self.armed += 1
        aside.write_text(f"{n} {self.armed}")
        aside.rename(self.at)

    def dies(self, step_is_done):
        """Armed until the step is done, and a little longer: some changes come behind it."""
        wait_until("the agent is dead or through", 60, lambda: self.node.agent.poll() is not None or step_is_done(), every=0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.node.agent.wait(0.2)
        self.at.unlink(missing_ok=True)
        if self.node.agent.poll() is None:
            return False
        assert self.node.agent.returncode == -9, self.node.agent_log.read_text()[-3000:]
        self.node.agent = None
        return True

    def said(self):
        """What it died at since this was last asked."""
        path = self.at.with_name("kill_at.said")
        lines = path.read_text().splitlines() if path.exists() else []
        new, self.seen = lines[self.seen:], len(lines)
        return new

    def no_half_files(self):
        folders = (self.node.state, self.node.hook, self.node.cdi_dir())
        return not [name for folder in folders for _, _, names in os.walk(folder) for name in names if ".tmp-" in name]

    def is_served(self):
        return self.node.allocatable() == 2 * self.node.split


def starts(mortal):
    """The very first start on a node, which makes everything; once more for each n."""
    node = mortal.node
    for n in itertools.count(1, STEP):
        shutil.rmtree(node.state, ignore_errors=True)
        shutil.rmtree(node.hook, ignore_errors=True)
        (node.hook / "vgpu").mkdir(parents=True)  # as HAMi's chart makes it
        mortal.arm(n)
        mortal.start()
        if not mortal.dies(mortal.is_served):
            break
        mortal.start()
        wait_until("the agent serves", 60, mortal.is_served, every=0.01)
        wait_until("no half a file is left", 20, mortal.no_half_files)
        node.stop_agent(signal.SIGKILL)
        wait_until("the kubelet knows it", 10, lambda: node.allocatable() == 0, every=0.01)
    died = mortal.said()
    assert len(died) == (n - 1) // STEP
    for name in ("/lib/libvgpu.so", "/counter", "/runtime"):
        assert any(name in line for line in died), (name, died)
    shutil.rmtree(node.hook)  # what is kept for HAMi's monitor there comes at any time
    return len(died)


def stands(mortal, name, card, mib):
    """The kubelet gives up a pod whose Allocate dies; its controller makes another."""
    node = mortal.node

    def is_up():
        pod = node.pod(name)
        if pod["phase"] == "Failed":
            assert not pod["admitted"] and "rpc error: code = " in pod["message"], pod
            node.delete(name)
            node.run(node.knows(node.bind(Pod.one(name, hold(mib=1), restart="Always"), [[(card, mib, 0)]])))
        return pod["phase"] == "Running"
    wait_until(f"{name} runs", 60, is_up)
    check(node, name, [(card, mib)])


def containers_start(mortal):
    """One pod for each n."""
    node, cards, pods = mortal.node, mortal.node.uuids(), {}
    for n in itertools.count(1, STEP):
        name, card, mib = f"p{n}", cards[n % 2], 100 + 7 * n
        pods[name] = (card, mib)
        manifest = node.knows(node.bind(Pod.one(name, hold(mib=1), restart="Always"), [[(card, mib, 0)]]))
        mortal.arm(n)
        node.run(manifest)
        dead = mortal.dies(lambda p=name: node.phase(p) == "Running")
        if dead:
            mortal.start()
        stands(mortal, name, card, mib)
        if not dead:
            break
    died = mortal.said()
    for name in ("/limits", "/ld.so.preload", "/usage", "region", "/claims/"):
        assert any(name in line for line in died), (name, died)
    for name, (card, mib) in pods.items():  # the later ones changed nothing of the earlier ones
        node.kill_container(name)
    for name, (card, mib) in pods.items():
        wait_until(f"{name} is started again", 60, lambda p=name: node.restarts(p) >= 1 and node.phase(p) == "Running")
        check(node, name, [(card, mib)])
    wait_until("no half a file is left", 20, mortal.no_half_files)
    for usage in node.state.glob("alloc/*/usage"):
        assert [p.name for p in usage.iterdir()] == ["region"], usage
    return len(died)


def what_is_left_is_cleaned_up(mortal, pods):
    node = mortal.node
    wait_until("what the dead ones left is gone", 60, lambda: {len(names) for names in node.leftovers().values()} <= {0, pods})
    node.delete_all()
    # The kubelet's checkpoint forgets what is over at the next allocation.
    node.run(node.knows(node.bind(Pod.one("last", hold(mib=1)), [[(node.uuids()[0], 100, 0)]])))
    node.wait_running(["last"])
    node.stop_agent()
    for n in itertools.count(8, 3):  # some are of the start; each life gets further than the one before
        mortal.arm(n)
        mortal.start(fast=20)
        if not mortal.dies(lambda: {len(names) for names in node.leftovers().values()} <= {0, 1}):
            break
    died = mortal.said()
    assert sum(line.startswith("unlink") for line in died) >= 5, died
    check(node, "last", [(node.uuids()[0], 100)])
    return len(died)


def life(make):
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    node = make(folder, card_file="t4x2.yaml", split=MANY)
    try:
        node.driver_up()
        node.up()
        mortal = Mortal(node)
        deaths = [starts(mortal), containers_start(mortal)]
        deaths.append(what_is_left_is_cleaned_up(mortal, deaths[1] + 1))
        return deaths
    finally:
        node.down()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_agent_dies_at_every_change_of_a_file(needs_root):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for deaths in list(pool.map(life, [LateNode, ClassicNode])):
            print(f"killed {deaths[0]} times in its start, {deaths[1]} in a container's, {deaths[2]} in cleaning up")
