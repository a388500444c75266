"""hami-device-plugin: containers that ended, holders, and an agent that is killed."""
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request

import grpc
import pytest

from kubelet_peer import code_of, ids, number_of, PodResources, spec_of, wait_until


def test_ended_containers_are_cleaned_up(node, kubelet):
    kubelet.admit("uid-1", "c", ids(0, 0))
    kubelet.admit("uid-2", "c", ids(0, 1))
    kubelet.plugin.pre_start(ids(0, 0))
    kubelet.plugin.pre_start(ids(0, 1))
    assert len(node.leftovers()) == 6
    kubelet.forget("uid-1")
    wait_until("cleaned up", 12, lambda: len(node.leftovers()) == 3)
    kubelet.forget("uid-2")
    wait_until("cleaned up", 12, lambda: node.leftovers() == [])


@pytest.fixture
def blind(kubelet, agent, needs_root):
    """A node whose agent is in a pid namespace of its own, as without hostPID."""
    arguments = agent.arguments
    agent.arguments = lambda flags: ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *arguments(flags)]
    kubelet.start()
    agent.start("--metrics-bind-address=127.0.0.1:0")
    kubelet.wait_registered()
    kubelet.devices()
    return agent


def unseen(node):
    port = re.search(r"serving metrics address=\S+ port=(\d+)", node.log()).group(1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return int(re.search(r"^hami_agent_unseen_holders_total\{.*\} (\d+)$", text, re.M).group(1))


def test_without_hostpid_a_forgotten_pod_keeps_its_slot_while_the_kubelet_lists_it(blind, kubelet):
    pods = PodResources(blind.folder / "pods.sock")
    try:
        pods.pods = [("ns", "old", "c", ids(0, 0))]
        kubelet.admit("uid-1", "c", ids(0, 0))
        kubelet.plugin.pre_start(ids(0, 0))
        wait_until("the name", 5, lambda: blind.names() == {"old"})
        # It restarts without its checkpoint, and gives the device to the next pod.
        kubelet.forget("uid-1")
        kubelet.stop()
        kubelet.start()
        kubelet.wait_registered()
        kubelet.devices()
        pods.pods = [("ns", "old", "c", []), ("ns", "new", "c", ids(0, 0))]
        m = number_of(kubelet.admit("uid-2", "c", ids(0, 0)))
        code, text = code_of(kubelet.plugin.pre_start, ids(0, 0))
        assert code == "UNAVAILABLE" and "still held by pod ns/old" in text
        del pods.pods[0]
        kubelet.plugin.pre_start(ids(0, 0))
        assert spec_of(blind, m)
        assert unseen(blind) == 0 and "given out" not in blind.log()
    finally:
        pods.stop()


def test_without_hostpid_and_the_kubelet_s_list_a_slot_that_is_given_on_is_told(blind, kubelet):
    kubelet.admit("uid-1", "c", ids(0, 0))
    kubelet.plugin.pre_start(ids(0, 0))
    assert unseen(blind) == 0
    kubelet.forget("uid-1")
    m = number_of(kubelet.admit("uid-2", "c", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    assert spec_of(blind, m)
    said = [line for line in blind.log().splitlines() if "a slot is given out" in line]
    assert len(said) == 1 and "uid-1" in said[0] and ids(0, 0)[0] in said[0]
    assert unseen(blind) == 1


def test_without_hostpid_nothing_is_cleaned_up(blind, kubelet):
    """In a pid namespace of its own the agent sees nobody: that is no proof that nobody runs."""
    agent = blind
    kubelet.admit("uid-1", "c", ids(0, 0))
    kubelet.plugin.pre_start(ids(0, 0))
    kubelet.forget("uid-1")
    wait_until("it says so", 12, lambda: "give this pod hostPID" in agent.log())
    time.sleep(7)  # two rounds of cleaning
    assert len(agent.leftovers()) == 3


def test_a_container_that_fills_its_usage_folder_is_named_once(node, kubelet):
    n = number_of(kubelet.admit("uid-1", "greedy", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    usage = node.state / "alloc" / str(n) / "usage"
    os.truncate(usage / "region", 1 << 30)
    wait_until("cut", 8, lambda: (usage / "region").stat().st_size <= 16 << 20)
    (usage / "more").write_text("x")
    time.sleep(4)
    said = [line for line in node.log().splitlines() if "into its usage folder" in line]
    assert len(said) == 1 and "greedy" in said[0] and "uid-1" in said[0]


def test_an_ended_pod_is_cleaned_up_before_the_checkpoint_forgets_it(node, kubelet):
    """The kubelet drops an ended pod's entry only at the next allocation; its pod list drops it at once."""
    pods = PodResources(node.folder / "pods.sock")
    try:
        pods.pods = [("ns", "job", "main", ids(0, 0)), ("ns", "other", "c", ids(0, 1))]
        kubelet.admit("uid-1", "init", ids(0, 0, 2))
        kubelet.admit("uid-1", "main", ids(0, 0))
        kubelet.admit("uid-2", "c", ids(0, 1))
        for which in (ids(0, 0, 2), ids(0, 0), ids(0, 1)):
            kubelet.plugin.pre_start(which)
        wait_until("the names", 5, lambda: node.names() == {"job", "other"})
        del pods.pods[0]
        wait_until("cleaned up", 25, lambda: len(node.leftovers()) == 3)
        assert node.names() == {"other"}
    finally:
        pods.stop()


def container(folder):
    """A process with the folder mounted where a container's usage folder is, in a mount namespace of its own."""
    script = (f"mount -t tmpfs none /run && mkdir -p /run/hami-vgpu/usage && "
              f"mount --bind {folder}/usage /run/hami-vgpu/usage && echo ready && exec sleep 1000")
    process = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_running_container_keeps_its_folder_and_its_slot(node, kubelet, needs_root):
    """A kubelet that lost its checkpoint gives a running container's device to the next pod."""
    n = number_of(kubelet.admit("uid-1", "old", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    process = container(node.state / "alloc" / str(n))
    try:
        kubelet.forget("uid-1")
        m = number_of(kubelet.admit("uid-2", "new", ids(0, 0)))
        code, text = code_of(kubelet.plugin.pre_start, ids(0, 0))
        assert code == "UNAVAILABLE"
        assert ids(0, 0)[0] in text and "uid-1" in text and "old" in text
        time.sleep(7)  # two rounds of cleaning
        assert (node.state / "alloc" / str(n) / "limits").exists()
        assert ids(0, 0)[0] not in kubelet.plugin.preferred(ids(0, 0, 1), 1)
    finally:
        process.kill()
        process.wait()
    kubelet.plugin.pre_start(ids(0, 0))
    assert spec_of(node, m)
    wait_until("the old one is cleaned up", 12, lambda: not (node.state / "alloc" / str(n)).exists())


def test_the_agent_restarts_under_running_containers(node, kubelet):
    first = number_of(kubelet.admit("uid-1", "c", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    node.stop(signal.SIGKILL)
    node.start()
    kubelet.wait_registered()
    kubelet.devices()
    second = number_of(kubelet.admit("uid-2", "c", ids(0, 1)))
    assert second > first
    kubelet.plugin.pre_start(ids(0, 0))
    assert len(node.leftovers()) == 3
    assert ids(0, 0)[0] not in kubelet.plugin.preferred(ids(0, 0, 2), 1)


def test_killed_between_allocate_and_pre_start_nothing_stays(node, kubelet):
    first = number_of(kubelet.plugin.allocate(ids(0, 0))[0])
    node.stop(signal.SIGKILL)
    assert node.leftovers() == []
    node.start()
    kubelet.wait_registered()
    assert number_of(kubelet.plugin.allocate(ids(0, 0))[0]) > first


@pytest.mark.parametrize("left", [["claims/7.tmp-123", "counter.tmp-99"], ["claims/7"], ["alloc/7/usage/region"],
                                  ["../cdi/hami-vgpu-v.7.json"], ["../cdi/hami-vgpu-v.7.json.tmp-123"]])
def test_what_a_killed_agent_left_half_way_goes(kubelet, agent, left):
    for name in left:
        agent.state.mkdir(exist_ok=True)
        path = agent.state / name
        path.parent.resolve().mkdir(parents=True, exist_ok=True)
        path.write_text("hami-vgpu-claim 1\nnumb")
    kubelet.start()
    kubelet.write_checkpoint()
    agent.start()
    kubelet.wait_registered()
    wait_until("cleaned up", 12, lambda: agent.leftovers() == [])
    assert not list(agent.state.glob("*.tmp-*"))
    if "tmp" not in left[0]:
        assert number_of(kubelet.plugin.allocate(ids(0, 0))[0]) > 7


def test_kill_at_any_moment_of_many_starts(node, kubelet):
    """Killed again and again while containers start: no number twice, all that is left belongs to an entry."""
    seen = set()
    for turn in range(6):
        for k in range(3):
            uid = f"uid-{turn}-{k}"
            seen_before = len(seen)
            seen.add(number_of(kubelet.admit(uid, "c", ids(k % 2, turn % 4))))
            assert len(seen) == seen_before + 1
        threading.Timer(0.001 * turn, lambda: node.process.send_signal(signal.SIGKILL)).start()
        try:
            kubelet.plugin.pre_start(ids(0, turn % 4), timeout=2)
        except grpc.RpcError:
            pass
        node.process.wait(timeout=5)
        for k in range(3):
            kubelet.forget(f"uid-{turn}-{k}")
        node.start()
        kubelet.wait_registered()
        kubelet.devices()
    wait_until("nothing stays", 15, lambda: node.leftovers() == [])
