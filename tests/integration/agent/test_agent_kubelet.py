"""hami-device-plugin: kubelets that restart, other plugins, and drivers that come late, go or hang."""
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time

import pytest

from kubelet_peer import ids, UUIDS, wait_until


# ---- kubelet

BARE_WATCHER = """
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, sys.argv[1].encode(), 0x100) > 0
print("ready", flush=True)
while True:
    events, at = os.read(fd, 65536), time.monotonic()
    while events:
        size = 16 + struct.unpack_from("iIII", events)[3]
        if events[16:size].rstrip(b"\\0") == b"kubelet.sock":
            print(at, flush=True)
        events = events[size:]
"""


@contextlib.contextmanager
def bare_watcher(folder):
    """A process that does nothing but see kubelet.sock appear; yields a function that says when it first did since."""
    process = subprocess.Popen([sys.executable, "-c", BARE_WATCHER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield lambda since: next(at for at in map(float, process.stdout) if at > since)
    finally:
        process.kill()
        process.wait()


def measure_restarts(node, kubelet, count=20):
    """Milliseconds from each new kubelet.sock to the registration, less what a bare watcher took to see it."""
    took, bare = [], []
    with bare_watcher(kubelet.folder) as seen:
        for _ in range(count):
            answers = node.log().count("after_start_ms")
            kubelet.stop()
            time.sleep(0.05)
            stopped = time.monotonic()
            begun = kubelet.start()
            bare.append(max(0, 1000 * (seen(stopped) - begun)))
            took.append(max(0, 1000 * (kubelet.wait_registered() - begun) - bare[-1]))
            assert len(kubelet.devices()) == 8
            wait_until("the answer", 5, lambda: node.log().count("after_start_ms") > answers)
    print(f"kubelet restart to registered: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms; before that a "
          f"bare watcher: median {statistics.median(bare):.1f} ms, worst {max(bare):.1f} ms")
    return took


def test_kubelet_restarts_are_answered_at_once(node, kubelet):
    def good(took):
        return statistics.median(took) < 50 and max(took) < 500
    took = measure_restarts(node, kubelet)
    if not good(took) and os.getloadavg()[0] > os.cpu_count():
        took = measure_restarts(node, kubelet)  # the machine was busy with something else
    assert good(took)
    assert "ANOTHER PLUGIN" not in node.log()


def test_the_agent_waits_for_the_kubelet(kubelet, agent):
    agent.start()
    time.sleep(0.3)
    kubelet.start()
    kubelet.wait_registered(2)
    assert len(kubelet.devices()) == 8


def test_the_kubelets_folder_comes_late_and_goes(kubelet, agent):
    os.rmdir(kubelet.folder)
    agent.start()
    time.sleep(0.3)
    assert agent.process.poll() is None
    kubelet.folder.mkdir()
    kubelet.start()
    kubelet.wait_registered(2)
    kubelet.devices()
    kubelet.stop()
    kubelet.folder.rename(kubelet.folder.with_name("old"))
    wait_until("said", 5, lambda: agent.log().count("plugin folder") >= 2)
    kubelet.folder.mkdir()
    kubelet.start()
    kubelet.wait_registered(2)


def test_a_refusal_is_said_with_the_kubelets_words(kubelet, agent):
    kubelet.refuse = "the ResourceName is invalid, says the kubelet"
    kubelet.start()
    agent.start()
    wait_until("the refusal in the log", 5, lambda: kubelet.refuse in agent.log())
    kubelet.refuse = None
    kubelet.wait_registered()


def test_a_dropped_stream_is_registered_again(node, kubelet):
    kubelet.plugin.close()
    kubelet.wait_registered(2)
    wait_until("said", 2, lambda: "another plugin may serve" in node.log())


def test_a_resource_taken_over_again_and_again_is_said_loudly(node, kubelet):
    kubelet.plugin.close()
    kubelet.wait_registered(2)
    kubelet.devices()
    wait_until("registered again", 2, lambda: node.log().count("after_start_ms") == 2)
    kubelet.plugin.close()
    wait_until("a loud error", 5, lambda: "ANOTHER PLUGIN HAS TAKEN OVER OUR RESOURCE" in node.log())
    time.sleep(1)
    assert kubelet.registered.empty()  # backs off
    assert node.process.poll() is None


@pytest.mark.parametrize("alive", [True, False])
def test_a_socket_that_is_there_already(agent, kubelet, alive):
    """Another plugin's, which is said, or what a killed one left."""
    kubelet.start()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(kubelet.folder / "hami-vgpu.sock"))
        if alive:
            other.listen()
        agent.start()
        kubelet.wait_registered()
        assert kubelet.devices()
    assert ("ANOTHER PLUGIN LISTENS ON OUR SOCKET" in agent.log()) == alive


def test_a_replaced_socket_is_said_loudly_and_taken_back_once(node, kubelet):
    ours = kubelet.folder / "hami-vgpu.sock"

    def replace():
        s = socket.socket(socket.AF_UNIX)
        s.bind(str(kubelet.folder / "theirs"))
        s.listen()
        os.rename(kubelet.folder / "theirs", ours)
        return s

    first = replace()
    wait_until("a loud error", 5, lambda: "ANOTHER PLUGIN HAS REPLACED OUR SOCKET" in node.log())
    kubelet.wait_registered(2)
    inode = ours.stat().st_ino
    second = replace()
    time.sleep(1)
    assert ours.stat().st_ino != inode  # the second time it is left alone for a while
    assert kubelet.registered.empty()
    first.close()
    second.close()


# ---- driver

def test_the_agent_waits_for_the_driver(kubelet, agent):
    agent.set_nvml(ready=0)
    kubelet.start()
    agent.start("--fail-on-init-error=false")
    wait_until("said", 5, lambda: "waiting for the driver" in agent.log())
    assert kubelet.registered.empty()
    agent.set_nvml()
    kubelet.wait_registered(5)
    assert len(kubelet.devices()) == 8


def test_fail_on_init_error(kubelet, agent):
    agent.set_nvml(ready=0)
    kubelet.start()
    agent.start("--fail-on-init-error=true")
    assert agent.process.wait(timeout=5) == 1
    assert "libfile_nvml.so" in agent.log()


def test_memory_that_does_not_fit_is_refused_with_both_numbers(kubelet, agent):
    kubelet.start()
    agent.start(env={"HAMI_VGPU_MEMORY_MB_PER_CORE": "5000"}.items())
    assert agent.process.wait(timeout=5) == 1
    assert UUIDS[0] in agent.log() and "5000 MiB" in agent.log() and "16384 MiB" in agent.log()


def test_a_lost_card_is_unhealthy_and_comes_back(kubelet, agent):
    node = agent
    kubelet.start()
    agent.start("--health-recovery-seconds=1")
    kubelet.wait_registered()
    kubelet.devices()
    node.set_nvml(lost=1)
    devices = kubelet.devices(8)
    assert {d.ID for d in devices if d.health == "Unhealthy"} == set(ids(1, 0, 1, 2, 3))
    assert {d.ID for d in devices if d.health == "Healthy"} == set(ids(0, 0, 1, 2, 3))
    assert len(kubelet.plugin.preferred(ids(1, 0, 1), 1)) == 1
    assert kubelet.plugin.allocate(ids(1, 0))
    node.set_nvml(ready=0)
    assert {d.health for d in kubelet.devices(8)} == {"Unhealthy"}
    node.set_nvml()
    # The driver is back: its cards are, but the one that was lost before has to be well for a while.
    assert {d.ID for d in kubelet.devices(8) if d.health == "Healthy"} == set(ids(0, 0, 1, 2, 3))
    assert {d.health for d in kubelet.devices(8)} == {"Healthy"}


def test_a_hung_nvml_holds_nothing_up(node, kubelet):
    node.set_nvml(hang=1)
    wait_until("said", 40, lambda: "NVML does not answer" in node.log())
    took = []
    for _ in range(50):
        begun = time.monotonic()
        kubelet.plugin.allocate(ids(0, 0))
        took.append(1000 * (time.monotonic() - begun))
    print(f"Allocate with NVML hung: median {statistics.median(took):.2f} ms, worst {max(took):.2f} ms")
    assert statistics.median(took) < 10
    kubelet.admit("uid-1", "c", ids(0, 1))
    kubelet.plugin.pre_start(ids(0, 1), timeout=1)
    status, seconds = node.stop()
    assert status == 0 and seconds < 1
