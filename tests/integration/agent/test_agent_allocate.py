"""hami-device-plugin: the list, preferred devices, Allocate and PreStartContainer."""
import base64
import contextlib
import json
import re
import signal
import struct
import subprocess
import threading
import time

import grpc
import pytest

from kubelet_peer import code_of, ids, number_of, PodResources, spec_of, UUIDS, wait_until


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
    (claim,) = [p for p in (node.state / "claims").iterdir() if p.name.isdigit()]
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

@pytest.mark.parametrize("flags, memory, oversubscribe", [
    ([], 4096, 0), (["--oversubscribe", "--memory-mb-per-core=20000"], 20000, 1)])
def test_slots_beyond_the_card(kubelet, agent, flags, memory, oversubscribe):
    kubelet.start()
    agent.start(*flags)
    kubelet.wait_registered()
    kubelet.devices()
    n = number_of(kubelet.admit("uid-1", "main", ids(1, 2)))
    kubelet.plugin.pre_start(ids(1, 2))
    text = (agent.state / "alloc" / str(n) / "limits").read_text()
    assert f"gpu={UUIDS[1]} memory={memory << 20} cores=25\n" in text and f"\noversubscribe={oversubscribe}\n" in text


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


# ---- beside HAMi's tools

def test_hami_s_monitor_finds_each_container(kubelet, agent, short_tmp):
    """Read as HAMi's vGPUmonitor reads: the first *.cache in <pod UID>_<container>, by the offsets of layout 1.2."""
    folder = short_tmp / "monitor/containers"
    kubelet.start()
    agent.start(f"--hami-monitor-dir={folder}")
    kubelet.wait_registered()
    kubelet.admit("uid-1", "main", ids(1, 2, 3))
    kubelet.plugin.pre_start(ids(1, 2, 3))
    wait_until("the file", 15, lambda: list(folder.glob("uid-1_main/*.cache")))
    (path,) = folder.glob("uid-1_main/*.cache")
    image = path.read_bytes()
    assert len(image) >= 2008952
    assert struct.unpack_from("<3i", image) == (19920718, 1, 2)
    assert struct.unpack_from("<Q", image, 56) == (1,)
    assert image[64:64 + 96].rstrip(b"\0").decode() == UUIDS[1]
    assert struct.unpack_from("<Q", image, 1600) == (8192 << 20,)
    assert struct.unpack_from("<Q", image, 1728) == (50,)
    assert struct.unpack_from("<2i", image, 2008896) == (0, 1)


@pytest.fixture
def small_disk(agent, needs_root):
    """The agent's state on a file system of its own, of 4 MiB."""
    agent.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", agent.state], check=True)
    yield agent.state
    agent.end()
    subprocess.run(["umount", "-l", agent.state], check=True)


def test_a_full_disk_rejects_no_pod(small_disk, kubelet, agent):
    """Allocate needs no room, over as many calls as you like. A container that needs some waits for it."""
    kubelet.start()
    agent.start()
    kubelet.wait_registered()
    kubelet.devices()
    slot = [kubelet.healthy[0].ID]
    fill = small_disk / "fill"
    with contextlib.suppress(OSError), open(fill, "wb", buffering=0) as f:
        while True:
            f.write(bytes(4096))
    numbers = [number_of(kubelet.plugin.allocate(slot)[0]) for _ in range(1500)]
    kubelet.admit("uid-late", "c", slot)
    with pytest.raises(grpc.RpcError) as refused:
        kubelet.plugin.pre_start(slot)
    assert "No space left on device" in refused.value.details()
    agent.stop(signal.SIGKILL)
    agent.start()
    kubelet.wait_registered()
    kubelet.devices()
    numbers += [number_of(kubelet.plugin.allocate(slot)[0])]
    assert sorted(set(numbers)) == numbers, "none is given twice, also over a crash"
    fill.unlink()
    kubelet.plugin.pre_start(slot)


def test_what_stays_as_it_is_is_said_once(node, kubelet):
    """At --v=4: a card without events is looked at twice a second, a start that waits every few milliseconds."""
    for _ in range(2):
        with pytest.raises(grpc.RpcError):
            kubelet.plugin.pre_start(ids(0, 1))
    assert node.log().count("checkpoint cannot be read") == 1
    assert node.log().count("no events of a card") == 2, "each card's"
    kubelet.admit("uid-a", "c", ids(0, 1))
    kubelet.plugin.pre_start(ids(0, 1))
    assert node.log().count("checkpoint can be read again") == 1
