"""hami-device-plugin against a kubelet of grpcio and an NVML whose answers the test changes."""
import base64
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request

import grpc
import pytest

import kubelet_peer
from kubelet_peer import Agent, Kubelet, PodResources, number_of, wait_until

UUIDS = [f"GPU-00000000-0000-0000-0000-0000000000{i:02d}" for i in range(16)]


def ids(card, *numbers):
    return [f"{UUIDS[card]}::{n}" for n in numbers]


@pytest.fixture
def kubelet(short_tmp):
    it = Kubelet(short_tmp / "k")
    yield it
    it.stop()


@pytest.fixture
def agent(build, short_tmp, kubelet):
    it = Agent(build, short_tmp, kubelet)
    yield it
    it.end()


@pytest.fixture
def node(kubelet, agent):
    """Kubelet and agent, registered, the devices told."""
    kubelet.start()
    agent.start()
    kubelet.wait_registered()
    kubelet.devices()
    wait_until("the answer", 5, lambda: "after_start_ms" in agent.log())
    return agent


def spec_of(agent, number):
    return json.loads((agent.cdi / f"hami-vgpu-v.{number}.json").read_text())


def code_of(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return caught.value.code().name, caught.value.details()


# ---- the list

def test_registers_and_lists_every_slot_with_its_numa_node(kubelet, agent):
    agent.set_nvml(cards=8)
    kubelet.start()
    begun = agent.start()
    at = kubelet.wait_registered()
    devices = kubelet.devices()
    assert [d.ID for d in devices] == [i for c in range(8) for i in ids(c, 0, 1, 2, 3)]
    assert {d.health for d in devices} == {"Healthy"}
    assert [d.topology.nodes[0].ID for d in devices] == [c // 4 for c in range(8) for _ in range(4)]
    print(f"start to registered {1000 * (at - begun):.0f} ms")


def test_topology_can_be_left_out(kubelet, agent):
    kubelet.start()
    agent.start(env={"HAMI_ENABLE_TOPOLOGY": "false", "HAMI_VGPU_CORES_PER_DEVICE": "3"}.items())
    kubelet.wait_registered()
    devices = kubelet.devices()
    assert len(devices) == 6 and not any(d.HasField("topology") for d in devices)


def test_sixteen_thousand_devices(kubelet, agent):
    agent.set_nvml(cards=16, mib=81920)
    kubelet.start()
    agent.start("--cores-per-device=1000")
    kubelet.wait_registered()
    assert len({d.ID for d in kubelet.devices()}) == 16000
    everything = [d.ID for d in kubelet.healthy]
    assert len(kubelet.plugin.preferred(everything, 3)) == 3


# ---- preferred and Allocate

def test_preferred_packs(node, kubelet):
    free = ids(0, 0, 1, 2, 3) + ids(1, 2, 3)
    assert sorted(kubelet.plugin.preferred(free, 2)) == ids(1, 2, 3)
    assert sorted(kubelet.plugin.preferred(free, 4)) == ids(0, 0, 1, 2, 3)
    assert kubelet.plugin.preferred(free, 2, must=ids(0, 1))[0:] and ids(0, 1)[0] in kubelet.plugin.preferred(
        free, 2, must=ids(0, 1))


def test_preferred_never_errs(node, kubelet):
    strange = ["GPU-not-here::0", ids(0, 1)[0], "nonsense"]
    assert len(kubelet.plugin.preferred(strange, 2)) == 2


def test_allocate_answers_one_cdi_name_and_nothing_else(node, kubelet):
    first, second = kubelet.plugin.allocate(ids(0, 0, 1), ids(1, 3))
    for answer in (first, second):
        assert not answer.envs and not answer.mounts and not answer.devices and not answer.annotations
    assert number_of(second) == number_of(first) + 1
    assert node.leftovers() == []


def test_whatever_the_kubelet_picks_is_granted(node, kubelet):
    """The seed's case: the kubelet may take slots that are no neighbours, on several cards."""
    kubelet.admit("pod-a", "c", ids(0, 0, 3) + ids(1, 1))
    kubelet.plugin.pre_start(ids(0, 3, 0) + ids(1, 1))
    (claim,) = (node.state / "claims").iterdir()
    text = claim.read_text()
    assert f"card={UUIDS[0]} memory={8192 << 20} cores=50 slot=0" in text
    assert f"card={UUIDS[1]} memory={4096 << 20} cores=25 slot=1" in text
    assert "no neighbours" in node.log()


@pytest.mark.parametrize("bad, code, text", [
    ([], "INVALID_ARGUMENT", "no device"),
    ([f"{UUIDS[0]}::4"], "NOT_FOUND", f"{UUIDS[0]}"),
    (["GPU-11111111-0000-0000-0000-000000000000::0"], "NOT_FOUND", "GPU-11111111"),
    (["all"], "INTERNAL", "all"),
    ([f"{UUIDS[0]}::0", f"{UUIDS[0]}::0"], "INVALID_ARGUMENT", "twice"),
])
def test_bad_ids_are_refused_by_name(node, kubelet, bad, code, text):
    got, details = code_of(kubelet.plugin.allocate, bad)
    assert text in details
    assert got == code or code == "INTERNAL"
    assert kubelet.plugin.allocate(ids(0, 0))  # and the next one is served


def test_annotations_for_old_kubelets(kubelet, agent):
    kubelet.start()
    agent.start("--cdi-annotations=true")
    kubelet.wait_registered()
    (answer,) = kubelet.plugin.allocate(ids(0, 0))
    n = number_of(answer)
    assert [(a.key, a.value) for a in answer.annotations] == [(f"cdi.k8s.io/hami-vgpu_{n}", f"hami.io/vgpu=v.{n}")]


# ---- PreStart

def test_pre_start_writes_all_that_the_container_needs(node, kubelet):
    n = number_of(kubelet.admit("uid-1", "main", ids(1, 2, 3)))
    kubelet.plugin.pre_start(ids(1, 3, 2))

    spec = spec_of(node, n)
    assert spec["kind"] == "hami.io/vgpu"
    (device,) = spec["devices"]
    assert device["name"] == f"v.{n}"
    edits = device["containerEdits"]
    env = dict(e.split("=", 1) for e in edits["env"])
    assert env == {"HAMI_VGPU_UUID": f"{UUIDS[1]}/2", "NVIDIA_VISIBLE_DEVICES": UUIDS[1], "DRIVER": "1"}
    assert [d["path"] for d in edits["deviceNodes"]] == ["/dev/null", "/dev/nvidia1"]
    mounts = {m["containerPath"]: m for m in edits["mounts"]}
    folder = node.state / "alloc" / str(n)
    assert mounts["/run/hami-vgpu/limits"]["hostPath"] == str(folder / "limits")
    assert mounts["/run/hami-vgpu/usage"]["hostPath"] == str(folder / "usage")
    assert mounts["/etc/ld.so.preload"]["hostPath"] == str(folder / "ld.so.preload")
    assert "ro" in mounts["/run/hami-vgpu/limits"]["options"] and "ro" in mounts["/etc/ld.so.preload"]["options"]
    assert "ro" not in mounts["/run/hami-vgpu/usage"]["options"]
    library = mounts["/run/hami-vgpu/libvgpu.so"]["hostPath"]
    assert open(library, "rb").read() == node.library.read_bytes()
    assert re.search(r"/lib/libvgpu\.so\.[0-9a-f]{16}$", library)
    assert "/usr/lib64/libcuda.so.1" in mounts

    assert (folder / "limits").read_text().splitlines()[:2] == [
        "hami-vgpu-limits 1", f"gpu={UUIDS[1]} memory={8192 << 20} cores=50"]
    assert (folder / "ld.so.preload").read_text() == "/run/hami-vgpu/libvgpu.so\n"
    assert (folder / "usage").stat().st_mode & 0o777 == 0o755
    assert folder.parent.stat().st_mode & 0o777 == 0o750
    assert (folder / "usage/region").stat().st_mode & 0o777 == 0o666
    claim = (node.state / "claims" / str(n)).read_text()
    for line in ("state=active", "pod_uid=uid-1", "container=main", f"cdi=hami.io/vgpu=v.{n}", f"device={ids(1, 2)[0]}"):
        assert line in claim.splitlines()


def test_each_container_with_the_same_set_gets_its_own(node, kubelet):
    """A main container reuses a finished init container's devices: the pod is certain, the container is not."""
    init = number_of(kubelet.admit("uid-1", "init", ids(0, 1)))
    main = number_of(kubelet.admit("uid-1", "main", ids(0, 1)))
    kubelet.admit("uid-1", "other", ids(0, 1, 2))
    kubelet.plugin.pre_start(ids(0, 1))
    assert sorted(p.name for p in node.cdi.iterdir()) == sorted(f"hami-vgpu-v.{n}.json" for n in (init, main))
    assert f"alloc/{main}/limits" in json.dumps(spec_of(node, main))
    assert "container=init" in (node.state / "claims" / str(init)).read_text()
    assert "container=main" in (node.state / "claims" / str(main)).read_text()


def test_a_restarted_container_is_written_anew(node, kubelet):
    n = number_of(kubelet.admit("uid-1", "main", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    spec = node.cdi / f"hami-vgpu-v.{n}.json"
    before = spec.read_text()
    spec.write_text("{}")
    (node.state / f"alloc/{n}/limits").write_text("hami-vgpu-limits 1\nend\n")
    kubelet.plugin.pre_start(ids(0, 0))
    assert spec.read_text() == before
    assert "memory=" in (node.state / f"alloc/{n}/limits").read_text()


def test_another_slot_size_resizes_nobody_who_runs(node, kubelet):
    n = number_of(kubelet.admit("uid-1", "main", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    node.stop()
    node.start("--memory-mb-per-core=1000")
    kubelet.wait_registered()
    kubelet.plugin.pre_start(ids(0, 0))
    assert f"memory={4096 << 20}" in (node.state / f"alloc/{n}/limits").read_text()
    m = number_of(kubelet.admit("uid-2", "main", ids(0, 1)))
    kubelet.plugin.pre_start(ids(0, 1))
    assert f"memory={1000 << 20}" in (node.state / f"alloc/{m}/limits").read_text()


def test_without_a_checkpoint_the_remembered_calls_decide(node, kubelet):
    n = number_of(kubelet.plugin.allocate(ids(0, 2))[0])
    (kubelet.folder / "kubelet_internal_checkpoint").write_text("{torn")
    kubelet.plugin.pre_start(ids(0, 2))
    assert spec_of(node, n)
    begun = time.monotonic()
    code, text = code_of(kubelet.plugin.pre_start, ids(0, 3))
    assert code == "UNAVAILABLE" and "kubelet_internal_checkpoint" in text and ids(0, 3)[0] in text
    assert 1 < time.monotonic() - begun < 10  # a short wait, then the error


def test_a_waiting_start_goes_on_once_the_checkpoint_tells(node, kubelet):
    answer = kubelet.plugin.allocate(ids(0, 0, 1))[0]
    node.stop()
    node.start()
    kubelet.wait_registered()
    kubelet.devices()
    done = threading.Event()
    threading.Thread(target=lambda: (kubelet.plugin.pre_start(ids(0, 0, 1)), done.set()), daemon=True).start()
    assert not done.wait(0.3)
    kubelet.entries.append({"PodUID": "u", "ContainerName": "c", "ResourceName": "hami.com/vgpu",
                            "DeviceIDs": {"0": ids(0, 0, 1)},
                            "AllocResp": base64.b64encode(answer.SerializeToString()).decode()})
    kubelet.write_checkpoint()
    assert done.wait(2)
    assert spec_of(node, number_of(answer))


def test_pod_names_are_looked_up_behind(node, kubelet):
    pods = PodResources(node.folder / "pods.sock")
    try:
        pods.pods = [("ns", "train-0", "main", ids(0, 0))]
        init = number_of(kubelet.admit("uid-1", "init", ids(0, 0, 1)))
        main = number_of(kubelet.admit("uid-1", "main", ids(0, 0)))
        kubelet.plugin.pre_start(ids(0, 0, 1))
        kubelet.plugin.pre_start(ids(0, 0))
        for n in (main, init):
            path = node.state / "claims" / str(n)
            wait_until("the name", 8, lambda p=path: "pod_name=train-0" in p.read_text() and
                       "pod_namespace=ns" in p.read_text())
    finally:
        pods.stop()


# ---- ended containers, holders, restarts of the agent

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


def test_without_hostpid_nothing_is_cleaned_up(kubelet, agent, needs_root):
    """In a pid namespace of its own the agent sees nobody: that is no proof that nobody runs."""
    arguments = agent.arguments
    agent.arguments = lambda flags: ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *arguments(flags)]
    kubelet.start()
    agent.start()
    kubelet.wait_registered()
    kubelet.devices()
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


# ---- kubelet

def test_kubelet_restarts_are_answered_at_once(node, kubelet):
    took = []
    for _ in range(20):
        kubelet.stop()
        time.sleep(0.05)
        begun = kubelet.start()
        took.append(1000 * (kubelet.wait_registered() - begun))
        assert len(kubelet.devices()) == 8
        wait_until("the answer", 5, lambda n=len(took): node.log().count("after_start_ms") == n + 1)
    print(f"kubelet restart to registered: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms")
    assert statistics.median(took) < 50 and max(took) < 500
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


def test_a_lost_card_is_unhealthy_and_comes_back(node, kubelet):
    node.set_nvml(lost=1)
    devices = kubelet.devices(8)
    assert {d.ID for d in devices if d.health == "Unhealthy"} == set(ids(1, 0, 1, 2, 3))
    assert {d.ID for d in devices if d.health == "Healthy"} == set(ids(0, 0, 1, 2, 3))
    assert len(kubelet.plugin.preferred(ids(1, 0, 1), 1)) == 1
    assert kubelet.plugin.allocate(ids(1, 0))
    node.set_nvml(ready=0)
    assert {d.health for d in kubelet.devices(8)} == {"Unhealthy"}
    node.set_nvml()
    assert {d.health for d in kubelet.devices(8)} == {"Healthy"}


def test_a_hung_nvml_holds_nothing_up(node, kubelet):
    node.set_nvml(hang=1)
    wait_until("said", 15, lambda: "NVML does not answer" in node.log())
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


# ---- ending, options, health

def test_a_second_agent_on_the_same_state_is_refused(node, kubelet):
    second = subprocess.run(node.arguments([]), capture_output=True, text=True, timeout=20, check=False,
                            env={**os.environ, "FILE_NVML": str(node.nvml)})
    assert second.returncode == 1
    assert f"another hami-device-plugin runs with the state folder {node.state}" in second.stderr
    assert kubelet.plugin.allocate(ids(0, 0))


def test_sigterm_ends_it_within_a_second(node):
    status, seconds = node.stop()
    print(f"SIGTERM to exit {1000 * seconds:.0f} ms")
    assert status == 0 and seconds < 1
    assert not (node.kubelet.folder / "hami-vgpu.sock").exists()


def test_sigterm_while_it_waits(agent):
    agent.set_nvml(ready=0)
    agent.start()
    wait_until("started", 5, lambda: "waiting for the driver" in agent.log())
    status, seconds = agent.stop()
    assert status == 0 and seconds < 1


def test_sigterm_while_another_agent_has_the_state(node, needs_root):
    """As the first process of its pod, for which no signal has a default action."""
    second = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *node.arguments([])], text=True,
                              stderr=subprocess.PIPE, env={**os.environ, "FILE_NVML": str(node.nvml)})
    try:
        assert "waiting for its end" in next(line for line in second.stderr if "another agent" in line)
        first = int(open(f"/proc/{second.pid}/task/{second.pid}/children").read())
        begun = time.monotonic()
        os.kill(first, signal.SIGTERM)
        assert second.wait(timeout=10) == 0 and time.monotonic() - begun < 1
    finally:
        second.kill()


def run(build, *flags, env=()):
    return subprocess.run([str(build / "bin/hami-device-plugin"), *flags], capture_output=True, text=True, timeout=10,
                          env={**os.environ, **dict(env)})


@pytest.mark.parametrize("flags, text", [
    (["--mode=hami"], "--mode=hami: this version has only --mode=slices"),
    (["--mode=all"], '--mode: "all" is none of slices|hami|dra'),
    (["--cores-per-device=0"], '--cores-per-device: "0" is not a number between 1 and 1000'),
    (["--state-dir=here"], '--state-dir: "here" is not an absolute path'),
    (["--resource-name=vgpu"], '--resource-name: "vgpu" is not of the form domain/name'),
    (["--v=7"], '--v: "7" is not a number between 0 and 6'),
    (["--config=/nowhere.yaml"], "read /nowhere.yaml: No such file or directory"),
    (["word"], 'unexpected argument "word"; see --help'),
])
def test_bad_options(build, flags, text):
    done = run(build, *flags)
    assert done.returncode == 2
    assert done.stderr == f"hami-device-plugin: {text}\n"


def test_bad_config_names_file_line_key_and_reason(build, short_tmp):
    path = short_tmp / "config.yaml"
    path.write_text("# slots\nv: 2\n\n\n\n\ndeviceSplitCount: ten\n")
    done = run(build, f"--config={path}")
    assert done.returncode == 2
    assert done.stderr == (f'hami-device-plugin: read config {path}: line 7: deviceSplitCount: "ten" is not a number '
                           'between 1 and 1000\n')


def test_flag_over_environment_over_file(kubelet, agent, short_tmp):
    path = short_tmp / "config.yaml"
    path.write_text("cores-per-device: 3\nenable-topology: false\nslicing: dynamic\nfuture-key: {a: [1, 2]}\n")
    kubelet.start()
    agent.start(f"--config={path}", "--cores-per-device=5", env={"HAMI_VGPU_CORES_PER_DEVICE": "7",
                                                                 "HAMI_ENABLE_TOPOLOGY": "true"}.items())
    kubelet.wait_registered()
    devices = kubelet.devices()
    assert len(devices) == 10 and devices[0].HasField("topology")
    assert agent.log().count("future-key") == 1
    assert "slicing=dynamic" in (agent.state / "node").read_text()


def test_health_pages(kubelet, agent):
    agent.set_nvml(ready=0)
    agent.start("--healthz-bind-address=127.0.0.1:0")
    port = wait_until("the port", 5, lambda: re.search(r"serving health .*port=(\d+)", agent.log()))[1]

    def get(page):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    assert get("/healthz") == (200, "ok\n")
    assert get("/readyz")[0] == 503
    assert get("/elsewhere")[0] == 404
    kubelet.start()
    agent.set_nvml()
    kubelet.wait_registered(5)
    wait_until("ready", 5, lambda: get("/readyz")[0] == 200)


# ---- classic binding

def test_classic_binding_answers_everything(kubelet, agent):
    kubelet.start()
    agent.start("--binding=classic")
    kubelet.wait_registered()
    kubelet.devices()
    answer = kubelet.admit("uid-1", "c", ids(1, 1))
    (n,) = [int(p.name) for p in (agent.state / "claims").iterdir()]
    assert not answer.cdi_devices
    env = {e.key: e.value for e in answer.envs}
    assert env == {"HAMI_VGPU_UUID": f"{UUIDS[1]}/1", "NVIDIA_VISIBLE_DEVICES": UUIDS[1], "DRIVER": "1"}
    mounts = {m.container_path: m for m in answer.mounts}
    folder = agent.state / "alloc" / str(n)
    assert mounts["/run/hami-vgpu/limits"].host_path == str(folder / "limits")
    assert mounts["/run/hami-vgpu/limits"].read_only and not mounts["/run/hami-vgpu/usage"].read_only
    assert mounts["/etc/ld.so.preload"].read_only and "/run/hami-vgpu/libvgpu.so" in mounts
    assert [d.container_path for d in answer.devices] == ["/dev/null", "/dev/nvidia1"]
    assert "state=allocated" in (agent.state / "claims" / str(n)).read_text()
    (folder / "limits").unlink()
    kubelet.plugin.pre_start(ids(1, 1))
    assert (folder / "limits").exists() and not list(agent.cdi.glob("*"))
    assert "pod_uid=uid-1" in (agent.state / "claims" / str(n)).read_text()
    kubelet.forget("uid-1")
    wait_until("cleaned up", 12, lambda: agent.leftovers() == [])


@pytest.mark.parametrize("binding, kept", [("late", False), ("classic", True)])
def test_an_upgrade_keeps_the_library_that_a_stored_answer_names(kubelet, agent, binding, kept):
    """A late container that starts again gets a new spec; a classic one the answer that the kubelet keeps."""
    kubelet.start()
    agent.start(f"--binding={binding}")
    kubelet.wait_registered()
    kubelet.devices()
    kubelet.admit("uid-1", "c", ids(1, 1))
    kubelet.plugin.pre_start(ids(1, 1))
    (old,) = (agent.state / "lib").iterdir()
    agent.stop()
    agent.library.write_bytes(b"\x7fELF of the next version")
    agent.start(f"--binding={binding}")
    kubelet.wait_registered()
    assert old.exists() == kept


# ---- size

def test_idle_size(kubelet, agent, build):
    agent.set_nvml(cards=8)
    kubelet.start()
    agent.start("--cores-per-device=10")
    kubelet.wait_registered()
    time.sleep(1)
    rollup = open(f"/proc/{agent.process.pid}/smaps_rollup").read()
    rss = int(re.search(r"^Rss:\s+(\d+)", rollup, re.M)[1])
    dirty = int(re.search(r"^Private_Dirty:\s+(\d+)", rollup, re.M)[1])
    threads = len(os.listdir(f"/proc/{agent.process.pid}/task"))
    print(f"idle: RSS {rss} KiB, private dirty {dirty} KiB, {threads} threads")
    assert threads == 2 or b"asan" in open(f"/proc/{agent.process.pid}/maps", "rb").read()
    if b"libasan" not in open(f"/proc/{agent.process.pid}/maps", "rb").read():
        assert rss <= 14 * 1024 and dirty <= 3 * 1024


# ---- the page

def test_the_page_has_every_option_as_help_has_it(build):
    page = (kubelet_peer.REPO / "docs/agent.md").read_text()
    rows = {}
    for line in page.splitlines():
        if line.startswith("| `--"):
            cells = [c.strip().strip("`") for c in line.strip().strip("|").split("|")]
            rows[cells[0]] = (cells[1], cells[2], cells[3])
    wanted = {}
    for flag, text in re.findall(r"^  (--[a-z-]+).*\n        (.*)$", run(build, "--help").stdout, re.M):
        if flag in ("--help", "--version"):
            continue
        env = re.search(r" \[([A-Z_]+)\]$", text)
        text = text[:env.start()] if env else text
        default = re.search(r" \(default (\S+)\)$", text)
        text = text[:default.start()] if default else text
        wanted[flag] = (env[1] if env else "", default[1] if default else "", text)
    assert rows == wanted
