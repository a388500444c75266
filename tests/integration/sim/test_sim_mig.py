"""MIG in the simulation: instances as NVML's users make and see them, and CUDA programs on them."""
import os
import re
import subprocess

import pytest

from sim_peer import BUILD, MIB, NODES

IN_USE, NOT_FOUND, NO_ROOM, INVALID, NOT_SUPPORTED = 19, 6, 23, 2, 3

MIG = """
nvml.nvmlInit_v2()
class Place(ctypes.Structure):
    _fields_ = [("start", u32), ("size", u32)]
class Info(ctypes.Structure):
    _fields_ = [("device", ptr), ("id", u32), ("profile", u32), ("place", Place)]
def make(card, profile, start, size, slices):
    gi, ci = ptr(), ptr()
    r = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(card, profile, ctypes.byref(Place(start, size)), ctypes.byref(gi))
    if r != 0:
        return [r]
    r = nvml.nvmlGpuInstanceCreateComputeInstance(gi, slices, ctypes.byref(ci))
    return [r, gi, ci]
def mig(card, index):
    h = ptr()
    r = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index, ctypes.byref(h))
    return h if r == 0 else r
def devices(card):
    return [[text("nvmlDeviceGetUUID", h), text("nvmlDeviceGetName", h), number("nvmlDeviceGetGpuInstanceId", h),
             number("nvmlDeviceGetComputeInstanceId", h)] for h in (mig(card, i) for i in range(7)) if not isinstance(h, int)]
"""


def test_instances_are_made_listed_and_ended(sim):
    sim.up("h100x8-mig")
    got = sim.nvml(MIG + """
h = handle(1)
n = u32(9)
room = (Place * 9)()
out = {"placements": [nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(h, 9, room, ctypes.byref(n)),
                      [[p.start, p.size] for p in room[:n.value]]]}
out["bad place"] = make(h, 14, 1, 2, 1)
out["bad size"] = make(h, 14, 2, 1, 1)
r, gi, ci = make(h, 9, 4, 4, 2)
out["made"] = r
out["taken"] = make(h, 14, 4, 2, 1)
second = make(h, 19, 0, 1, 0)[0]
out["left"] = [number("nvmlDeviceGetGpuInstanceRemainingCapacity", h, p) for p in (19, 14, 9, 0)]
i = Info()
out["info"] = [nvml.nvmlGpuInstanceGetInfo(gi, ctypes.byref(i)), i.id, i.profile, i.place.start, i.place.size]
out["devices"] = devices(h)
out["memory"] = memory(mig(h, 0))
uuid = out["devices"][0][0].encode()
by_uuid, parent = ptr(), ptr()
out["by uuid"] = [nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(by_uuid)), by_uuid.value == mig(h, 0).value,
                  nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(by_uuid, ctypes.byref(parent)), parent.value == h.value,
                  number("nvmlDeviceIsMigDeviceHandle", by_uuid), number("nvmlDeviceIsMigDeviceHandle", h)]
out["other card"] = devices(handle(0))
out["busy"] = nvml.nvmlGpuInstanceDestroy(gi)
out["mode"] = [number("nvmlDeviceSetMigMode", h, 0), nvml.nvmlDeviceGetMigMode(h, ctypes.byref(room), ctypes.byref(n)), n.value]
out["ended"] = [nvml.nvmlComputeInstanceDestroy(ci), nvml.nvmlGpuInstanceDestroy(gi), nvml.nvmlGpuInstanceDestroy(gi)]
out["stale"] = text("nvmlDeviceGetUUID", by_uuid)
out["rest"] = len(devices(h))
print(json.dumps(out))""")
    uuid = got["devices"][0][0]
    assert re.fullmatch(r"MIG-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", uuid)
    assert got == {
        "placements": [0, [[0, 4], [4, 4]]], "bad place": [INVALID], "bad size": [INVALID], "made": 0, "taken": [NO_ROOM],
        "left": [3, 1, 0, 0], "info": [0, 1, 9, 4, 4],
        "devices": [[uuid, "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 1, 0],
                    [got["devices"][1][0], "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 2, 0]],
        "memory": [40448 * MIB, 40448 * MIB, 0], "by uuid": [0, True, 0, True, 1, 0], "other card": [], "busy": IN_USE,
        "mode": [IN_USE, 0, 0], "ended": [0, 0, INVALID], "stale": INVALID, "rest": 1}
    # Another process sees what is left, and a reload takes it away and makes the pending mode the mode.
    assert len(sim.card(1)["mig_devices"]) == 1
    sim.ctl("driver-reload")
    card = sim.card(1)
    assert (card["mig"], card["mig_devices"]) == (False, [])


def test_the_mode_waits_for_an_idle_card(sim):
    sim.up("a100x8-nvlink")
    sim.ctl("gpu", 0, "hold", 100)
    done = sim.run("gpu", 0, "mig", "on")
    assert done.returncode == 1 and "pending" in done.stderr
    assert (sim.card()["mig"], sim.card()["mig_pending"]) == (False, True)
    sim.ctl("gpu", 0, "hold", 0)
    sim.ctl("gpu", 1, "mig", "on")
    assert sim.run("gpu", 0, "mig", "create", "1g.5gb").returncode == 1
    assert sim.ctl("gpu", 1, "mig", "create", "1g.5gb+me", 3).startswith("MIG-")
    assert sim.run("gpu", 1, "mig", "create", "1g.5gb+me").returncode == 1  # one of them a card
    assert sim.run("gpu", 1, "mig", "off").returncode == 1


def test_an_instance_of_a_lost_card_is_gone(sim):
    sim.up("h100x8-mig")
    sim.ctl("gpu", 2, "mig", "create", "7g.80gb")
    sim.ctl("gpu", 2, "lost")
    sim.ctl("gpu", 2, "recover")
    assert (sim.card(2)["mig"], sim.card(2)["mig_devices"]) == (True, [])


def run_probe(sim, *words, **env):
    return subprocess.run([BUILD / "tests/vgpu-probe", *words], env=dict(sim.env, **env), text=True, capture_output=True,
                          timeout=30, check=False)


def test_cuda_has_the_instance_that_is_visible(sim):
    sim.up("h100x8-mig")
    whole = run_probe(sim, "info")
    assert whole.returncode != 0  # MIG on, no instance: nothing to compute on
    small, large = (sim.ctl("gpu", 3, "mig", "create", p).strip() for p in ("1g.10gb", "3g.40gb"))
    for uuid, mib in ((small, 9984), (large, 40448)):
        done = run_probe(sim, "info", NVIDIA_VISIBLE_DEVICES=uuid)
        assert done.returncode == 0, done.stderr
        assert str(mib * MIB) in done.stdout, done.stdout
    assert str(40448 * MIB) in run_probe(sim, "info", CUDA_VISIBLE_DEVICES=large).stdout
    assert run_probe(sim, "info", CUDA_VISIBLE_DEVICES=large, NVIDIA_VISIBLE_DEVICES=small).returncode != 0


def test_a_node_comes_up_with_its_instances(sim, tmp_path):
    text = (NODES / "a100x8-nvlink.yaml").read_text()
    node = tmp_path / "node.yaml"
    first = 'cpus: "48-63,176-191"}'
    made = first.replace("}", ", mig: true, mig_instances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]}")
    node.write_text(text.replace(first, made, 1))
    sim.ctl("up", node)
    assert [(m["profile"], m["start"], m["size"]) for m in sim.card()["mig_devices"]] == [("3g.20gb", 4, 4), ("1g.5gb", 0, 1)]
    assert sim.card(1)["mig"] is False


@pytest.mark.parametrize("broken, error", [
    ("{profile: 9g.90gb, start: 0}", '"9g.90gb" is none of the model'),
    ("{profile: 1g.5gb, start: 8}", "start"),
    ("{profile: 1g.5gb, size: 1}", "unknown key")])
def test_a_node_with_bad_instances_does_not_come_up(sim, tmp_path, broken, error):
    node = tmp_path / "node.yaml"
    node.write_text((NODES / "h100x8-mig.yaml").read_text().replace("mig: true}", f"mig: true, mig_instances: [{broken}]}}", 1))
    done = sim.run("up", node)
    assert done.returncode == 2 and error in done.stderr


def test_minors_name_the_nodes(sim):
    sim.up("h100x8-mig")
    minors = dict(line.rsplit(" ", 1) for line in
                  (sim.dir / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines())
    assert (minors["config"], minors["monitor"], minors["gpu0/gi0/access"]) == ("1", "2", "3")
    assert minors["gpu1/gi3/ci0/access"] == "166"  # 3 + 135 + 3 * 9 + 1, as a real driver lists it
    assert (sim.dir / "dev/nvidia-caps/nvidia-cap166").exists() and os.path.lexists(sim.dir / "dev/nvidia7")
