"""A sick card under running pods, in mode hami: who is told, and that nobody is ended for it."""
import json
import shutil
import tempfile

import pytest

pytest.register_assert_rewrite("node.hami")

from node.base import Pod, wait_until  # noqa: E402
from node.hami import REGISTER, HamiNode, serve_hami  # noqa: E402
from node.scenarios import hold  # noqa: E402


class Node(HamiNode):
    def start_agent(self, *flags, **kw):
        super().start_agent("--health-recovery-seconds=3", "--metrics-bind-address=", *flags, **kw)


@pytest.fixture
def node():
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = Node(folder, card_file="t4x2.yaml", split=10)
    try:
        serve_hami(it)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)


def events(node, name, reason):
    return [o for o in node.api.all("events") if o["involvedObject"].get("name") == name and o["reason"] == reason]


def health(node):
    return {c["id"]: c.get("health", False) for c in json.loads(node.node_annotations()[REGISTER])}


def test_pods_on_a_sick_card_are_told_and_go_on(node):
    a, b = node.uuids()
    node.place(Pod.one("on-a", hold(mib=1)), [[(a, 1000, 0)]])
    node.place(Pod.one("on-b", hold(mib=1)), [[(b, 1000, 0)]])
    node.place(Pod.one("on-both", hold(mib=1), vgpu=2), [[(a, 1000, 0), (b, 1000, 0)]])
    node.wait_running(["on-a", "on-b", "on-both"], seconds=40)
    node.simctl("gpu", "1", "xid", "31")  # a program's: nobody hears of it
    node.simctl("gpu", "1", "xid", "74")
    wait_until("the annotation", 10, lambda: health(node) == {a: True, b: False})
    # The kubelet has no more to give of it; what runs keeps what it has.
    wait_until("allocatable", 10, lambda: node.allocatable() == 10)
    for name in ("on-b", "on-both"):
        (event,) = wait_until(f"{name} is told", 10, lambda n=name: events(node, n, "GPUUnhealthy"))
        assert event["type"] == "Warning" and f"{b}: Xid 74: NVLink error" in event["message"]
        assert event["involvedObject"]["uid"] == node.api_pod(name)["metadata"]["uid"]
    (event,) = wait_until("the node is told", 10, lambda: events(node, "node1", "GPUUnhealthy"))
    assert not events(node, "on-a", "GPUUnhealthy")
    wait_until("well again", 20, lambda: health(node) == {a: True, b: True} and node.allocatable() == 20)
    for name in ("on-b", "on-both", "node1"):
        wait_until(f"{name} is told", 10, lambda n=name: events(node, n, "GPUHealthy"))
    assert all(node.phase(n) == "Running" for n in ("on-a", "on-b", "on-both"))
    node.place(Pod.one("later", hold(mib=1)), [[(b, 1000, 0)]])
    node.wait_running(["later"], seconds=40)
