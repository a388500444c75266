"""libnvidia-ml.so.1 of the simulated node through ctypes."""
import json
import re
import subprocess
import sys
import time

from sim_peer import BUILD, MIB, MS, NVML_PRELUDE, OK, REPO, T4_RESERVED


def test_nvml_without_a_node(sim):
    assert sim.nvml("""
print(json.dumps([number("nvmlDeviceGetCount_v2"), text("nvmlSystemGetDriverVersion"), nvml.nvmlInit_v2(),
                  nvml.nvmlShutdown(), nvml.nvmlDeviceClearCpuAffinity(None)]))""") == [-1, 1, 9, 1, 1]


def test_nvml_identity(sim):
    sim.up("a100x8-nvlink")
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = handle(2)
out = {"count": number("nvmlDeviceGetCount_v2"), "driver": text("nvmlSystemGetDriverVersion"),
       "name": text("nvmlDeviceGetName", h), "uuid": text("nvmlDeviceGetUUID", h),
       "minor": number("nvmlDeviceGetMinorNumber", h), "index": number("nvmlDeviceGetIndex", h),
       "numa": number("nvmlDeviceGetNumaNodeId", h), "cores": number("nvmlDeviceGetNumGpuCores", h)}
short = ctypes.create_string_buffer(8)
out["short"] = nvml.nvmlDeviceGetUUID(h, short, 8)
by = {}
for call, key in (("nvmlDeviceGetHandleByUUID", out["uuid"]), ("nvmlDeviceGetHandleByPciBusId_v2", "0000:47:00.0"),
                  ("nvmlDeviceGetHandleByPciBusId_v2", "00000000:47:00.0"),
                  ("nvmlDeviceGetHandleByPciBusId", "47:00.0")):
    g = ptr()
    by[call + key] = [getattr(nvml, call)(key.encode(), ctypes.byref(g)), g.value == h.value]
out["by"] = list(by.values())
g = ptr()
out["none"] = [nvml.nvmlDeviceGetHandleByUUID(b"GPU-0", ctypes.byref(g)),
               nvml.nvmlDeviceGetHandleByIndex_v2(8, ctypes.byref(g)), nvml.nvmlDeviceGetName(None, short, 8),
               nvml.nvmlDeviceGetName(ptr(1), short, 8), nvml.nvmlDeviceGetIndex(h, None)]
pci = ctypes.create_string_buffer(68)
out["pci"] = [nvml.nvmlDeviceGetPciInfo_v3(h, pci), pci.raw[36:68].split(b"\\0")[0].decode(),
              pci.raw[:16].split(b"\\0")[0].decode()]
major, minor = ctypes.c_int(), ctypes.c_int()
out["cc"] = [nvml.nvmlDeviceGetCudaComputeCapability(h, ctypes.byref(major), ctypes.byref(minor)), major.value,
             minor.value]
cuda = ctypes.c_int()
out["cuda"] = [nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(cuda)), cuda.value]
nvml.nvmlErrorString.restype = ctypes.c_char_p
out["strings"] = [nvml.nvmlErrorString(i).decode() for i in (0, 15, 999, 12345, -1)]
print(json.dumps(out))""")
    uuid = sim.card(2)["uuid"]
    assert got == {
        "count": 8, "driver": "550.90.07", "name": "NVIDIA A100-SXM4-40GB", "uuid": uuid, "minor": 2, "index": 2,
        "numa": 1, "cores": 6912, "short": 7, "by": [[0, True]] * 4, "none": [6, 2, 2, 2, 2],
        "pci": [0, "00000000:47:00.0", "0000:47:00.0"], "cc": [0, 8, 0], "cuda": [0, 12040],
        "strings": ["Success", "GPU is lost", "Unknown Error", "Unknown Error", "Unknown Error"]}


def test_nvml_memory_and_processes_agree_with_the_status(sim):
    sim.up()
    users = [sim.user() for _ in range(3)]
    for i, user in enumerate(users):
        assert user("charge", 0, (i + 1) * 100 * MIB)[0] == OK
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = handle(0)
class V2(ctypes.Structure):
    _fields_ = [("version", u32), ("total", u64), ("reserved", u64), ("free", u64), ("used", u64)]
v2 = V2(version=0x02000028)
old = V2(version=0x01000028)
class V1(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64)]
n, room = u32(0), u32(2)
v1 = (V1 * 3)()
three = u32(3)
few = (Process * 2)()
out = {"v1": memory(h), "v2": [nvml.nvmlDeviceGetMemoryInfo_v2(h, ctypes.byref(v2)), v2.total, v2.reserved, v2.free,
       v2.used], "old": nvml.nvmlDeviceGetMemoryInfo_v2(h, ctypes.byref(old)),
       "list": processes(h), "list2": processes(h, "nvmlDeviceGetComputeRunningProcesses_v2"),
       "need": [nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(n), None), n.value],
       "few": [nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(room), few), room.value],
       "list1": [nvml.nvmlDeviceGetComputeRunningProcesses(h, ctypes.byref(three), v1), {p.pid: p.used for p in v1}],
       "graphics": processes(h, "nvmlDeviceGetGraphicsRunningProcesses_v3"), "other": processes(handle(1))}
class Detail(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32), ("protected", u64)]
class List(ctypes.Structure):
    _fields_ = [("version", u32), ("mode", u32), ("count", u32), ("processes", ctypes.POINTER(Detail))]
d = (Detail * 8)()
l = List(0x01000018, 0, 8, d)
out["detail"] = [nvml.nvmlDeviceGetRunningProcessDetailList(h, ctypes.byref(l)), {d[i].pid: d[i].used for i in
                 range(l.count)}]
print(json.dumps(out))""")
    want = {str(u.pid): (i + 1) * 100 * MIB for i, u in enumerate(users)}
    total, used = 15360 * MIB, T4_RESERVED + 600 * MIB
    assert got["v1"] == [total, total - used, used]
    assert got["v2"] == [0, total, T4_RESERVED, total - used, 600 * MIB]
    assert got["old"] == 25
    assert got["list"] == got["list2"] == want and got["list1"] == [0, want] and got["detail"] == [0, want]
    assert got["need"] == got["few"] == [7, 3]
    assert got["graphics"] == got["other"] == {}


def test_nvml_topology(sim):
    sim.up("a100x8-nvlink")
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = [handle(i) for i in range(8)]
pci = ctypes.create_string_buffer(68)
cpus = (ctypes.c_ulong * 4)()
count = u32(8)
near = (ptr * 8)()
print(json.dumps({
    "level": [number("nvmlDeviceGetTopologyCommonAncestor", h[0], h[i]) for i in range(3)],
    "nvlink": [number("nvmlDeviceGetP2PStatus", h[0], h[5], 2), number("nvmlDeviceGetP2PStatus", h[0], h[5], 0)],
    "links": [number("nvmlDeviceGetNvLinkState", h[0], i) for i in (0, 11, 12, 18)],
    "type": number("nvmlDeviceGetNvLinkRemoteDeviceType", h[0], 3),
    "remote": [nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(h[0], 7, pci), pci.raw[36:68].split(b"\\0")[0].decode()],
    "cpus": [nvml.nvmlDeviceGetCpuAffinity(h[0], 4, cpus), list(cpus)],
    "near": [nvml.nvmlDeviceGetTopologyNearestGpus(h[0], 20, ctypes.byref(count), near), count.value, near[0] ==
             h[1].value],
    "nodes": [nvml.nvmlDeviceGetMemoryAffinity(h[0], 1, cpus, 0), cpus[0]]}))""")
    assert got["level"] == [0, 20, 50]
    assert got["nvlink"] == [0, 0]
    assert got["links"] == [1, 1, -2, -2]
    assert got["type"] == 2 and got["remote"] == [0, "00000000:C5:00.0"]
    mask = [0xFFFF << 48, 0, 0xFFFF << 48, 0]
    assert got["cpus"] == [0, mask]
    assert got["near"] == [0, 1, True] and got["nodes"] == [0, 8]


def test_nvml_without_nvlink_or_mig(sim):
    sim.up("rtx4090x4")
    assert sim.nvml("""
nvml.nvmlInit_v2()
h, g = handle(0), handle(1)
m = (u32 * 2)()
print(json.dumps([number("nvmlDeviceGetNvLinkState", h, 0), number("nvmlDeviceGetP2PStatus", h, g, 2),
    number("nvmlDeviceGetP2PStatus", h, g, 0), nvml.nvmlDeviceGetMigMode(h, m, ctypes.byref(m, 4)),
    nvml.nvmlDeviceGetEccMode(h, m, ctypes.byref(m, 4)), text("nvmlDeviceGetSerial", h)]))""") == [-3, 5, 2, 3, 3, 3]


def test_nvml_mig(sim):
    sim.up("h100x8-mig")
    assert sim.nvml("""
nvml.nvmlInit_v2()
h = handle(7)
m = (u32 * 2)()
class Profile(ctypes.Structure):
    _fields_ = [(n, u32) for n in "id p2p slices instances sms ce dec enc jpeg ofa".split()] + [("memory", u64)]
p = Profile()
profiles = []
for i in range(18):
    if nvml.nvmlDeviceGetGpuInstanceProfileInfo(h, i, ctypes.byref(p)) == 0:
        profiles.append([i, p.id, p.slices, p.instances, p.sms, p.memory])
g = ptr()
print(json.dumps([nvml.nvmlDeviceGetMigMode(h, m, ctypes.byref(m, 4)), list(m), number("nvmlDeviceGetMaxMigDeviceCount",
    h), nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, 0, ctypes.byref(g)), profiles]))""") == [
        0, [1, 1], 7, 6, [[0, 19, 1, 7, 16, 9984], [1, 14, 2, 3, 32, 20096], [2, 9, 3, 2, 60, 40448],
                          [3, 5, 4, 1, 64, 40448], [4, 0, 7, 1, 132, 81152], [7, 20, 1, 1, 16, 9984],
                          [9, 15, 1, 4, 26, 20096]]]


UTILISATION = """
nvml.nvmlInit_v2()
h = handle(0)
class Rates(ctypes.Structure):
    _fields_ = [("gpu", u32), ("memory", u32)]
r = Rates()
n, out = u32(64), (Sample * 64)()
nvml.nvmlDeviceGetUtilizationRates(h, ctypes.byref(r))
result = nvml.nvmlDeviceGetProcessUtilization(h, out, ctypes.byref(n), u64(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
none = u32(0)
need = nvml.nvmlDeviceGetProcessUtilization(h, None, ctypes.byref(none), u64(0))
print(json.dumps({"gpu": r.gpu, "result": result, "sm": {out[i].pid: out[i].sm for i in range(n.value)},
    "at": max([out[i].at for i in range(n.value)], default=0), "need": [need, none.value],
    "temperature": number("nvmlDeviceGetTemperature", h, 0), "power": number("nvmlDeviceGetPowerUsage", h),
    "state": number("nvmlDeviceGetPerformanceState", h)}))
"""


def test_nvml_utilisation(sim):
    sim.up("t4x2", "--clock=virtual")
    idle = sim.nvml(UTILISATION)
    assert idle == {"gpu": 0, "result": 6, "sm": {}, "at": 0, "need": [6, 0], "temperature": 32, "power": 9000,
                    "state": 8}
    a, b = sim.user(), sim.user()
    for user in (a, b):
        user("submit", 0, 1000 * MS)
    a.send("wait", 0, 1000 * MS)
    assert b("wait", 0, 1000 * MS)[0] == OK  # 2 s of work: 12 samples
    busy = sim.nvml(UTILISATION)
    assert busy["gpu"] == 100 and busy["state"] == 0 and busy["power"] == 70000 and busy["temperature"] == 75
    assert busy["sm"] == {str(a.pid): 50, str(b.pid): 50} and busy["need"] == [7, 256]
    assert abs(busy["at"] / 1e6 - time.time()) < 60
    b("sleep", 10_000 * MS // 10)
    b("sleep", 10_000 * MS // 10)
    assert sim.nvml(UTILISATION)["gpu"] == 0


def test_nvml_xid_events(sim):
    sim.up()
    watcher = subprocess.Popen([sys.executable, "-u", "-c", NVML_PRELUDE + """
class Data(ctypes.Structure):
    _fields_ = [("device", ptr), ("type", u64), ("data", u64), ("gi", u32), ("ci", u32)]
nvml.nvmlInit_v2()
s, d = ptr(), Data()
assert nvml.nvmlEventSetCreate(ctypes.byref(s)) == 0
assert nvml.nvmlDeviceRegisterEvents(handle(1), u64(8), s) == 0
print(nvml.nvmlEventSetWait_v2(s, ctypes.byref(d), 0))
for line in sys.stdin:
    r = nvml.nvmlEventSetWait_v2(s, ctypes.byref(d), 5000)
    print(json.dumps([r, d.device == handle(1).value if r == 0 else None, d.type, d.data]))
"""], env=sim.python_env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask():
        watcher.stdin.write("x\n")
        watcher.stdin.flush()
        return json.loads(watcher.stdout.readline())
    try:
        assert watcher.stdout.readline() == "10\n"  # nothing yet
        sim.ctl("gpu", 1, "xid", 43)
        assert ask() == [0, True, 8, 43]
        sim.ctl("gpu", 0, "xid", 13)  # another card's
        sim.ctl("gpu", 1, "xid", 94)
        assert ask() == [0, True, 8, 94]
        watcher.stdin.write("x\n")
        watcher.stdin.flush()
        time.sleep(0.2)
        start = time.monotonic()
        sim.ctl("gpu", 1, "xid", 31)
        assert json.loads(watcher.stdout.readline()) == [0, True, 8, 31]
        assert time.monotonic() - start < 1  # woken, not polled to the end
    finally:
        watcher.kill()
        watcher.wait()


def test_visible_devices(sim):
    sim.up("l4x4")
    uuids = [c["uuid"] for c in sim.status()["cards"]]
    code = """
nvml.nvmlInit_v2()
n = number("nvmlDeviceGetCount_v2")
print(json.dumps([text("nvmlDeviceGetUUID", handle(i)) for i in range(n)]))"""
    assert sim.nvml(code) == uuids
    assert sim.nvml(code, NVIDIA_VISIBLE_DEVICES=f"{uuids[3]},{uuids[1]}") == [uuids[1], uuids[3]]
    assert sim.nvml(code, NVIDIA_VISIBLE_DEVICES="none") == []


def test_every_name_is_exported_and_answers(sim):
    sim.up()
    names = (REPO / "sim/nvml/nvml-symbols.txt").read_text().split()
    out = subprocess.run(["nm", "-D", "--defined-only", BUILD / "sim/libnvidia-ml.so.1"], text=True, check=True,
                         capture_output=True).stdout
    exported = {line.split()[2] for line in out.splitlines() if line.split()[1] == "T"}
    assert exported == set(names) | {"nvmlErrorString"} and len(names) >= 411
    modelled = re.findall(r"^CALL\((\w+)", (REPO / "sim/nvml/modelled.def").read_text(), re.M)
    assert len(set(modelled)) == len(modelled) and set(modelled) <= exported
    rest = sorted(exported - set(modelled))
    assert sim.nvml(f"""
names = {rest!r}
before = {{getattr(nvml, n)() for n in names}}
nvml.nvmlInit_v2()
print(json.dumps([sorted(before), sorted({{getattr(nvml, n)() for n in names}})]))""") == [[1], [3]]


def test_the_docs_list_what_is_modelled():
    calls = dict(re.findall(r'^CALL\((\w+), "([^"]*)"\)', (REPO / "sim/nvml/modelled.def").read_text(), re.M))
    docs = (REPO / "docs/simulation.md").read_text()
    listed = dict(re.findall(r"^\| `(nvml\w+)` \| (.*?) \|$", docs, re.M))
    assert listed == calls, "run sim/nvml/gen_docs.py"
    others = re.search(r"<!-- other NVML calls.*?-->\n(.*?)<!-- end -->", docs, re.S)[1].split()
    names = set((REPO / "sim/nvml/nvml-symbols.txt").read_text().split())
    assert sorted(others) == sorted(names - set(calls)) and len(others) > 200, "run sim/nvml/gen_docs.py"


def test_errors_of_a_card(sim):
    """What the driver counts and asks for; a reset ends it."""
    code = """
class Data(ctypes.Structure):
    _fields_ = [("device", ptr), ("type", u64), ("data", u64), ("gi", u32), ("ci", u32)]
class Field(ctypes.Structure):
    _fields_ = [("field", u32), ("scope", u32), ("at", u64), ("latency", u64), ("kind", u32), ("result", u32), ("value", u64)]
nvml.nvmlInit_v2()
h = handle(0)
def ecc():
    n = u64()
    r = nvml.nvmlDeviceGetTotalEccErrors(h, 1, 0, ctypes.byref(n))
    return n.value if r == 0 else -r
def rows():
    v = [u32() for _ in range(4)]
    r = nvml.nvmlDeviceGetRemappedRows(h, *map(ctypes.byref, v))
    return [x.value for x in v[2:]] if r == 0 else -r
def action():
    f = Field(field=230)
    assert nvml.nvmlDeviceGetFieldValues(h, 1, ctypes.byref(f)) == 0
    return f.value if f.result == 0 else -f.result
def types():
    t = u64()
    assert nvml.nvmlDeviceGetSupportedEventTypes(h, ctypes.byref(t)) == 0
    return t.value
def events():
    s, d, seen = ptr(), Data(), []
    assert nvml.nvmlEventSetCreate(ctypes.byref(s)) == 0
    r = nvml.nvmlDeviceRegisterEvents(h, u64(types()), s)
    return s, r
s, r = events()
print(json.dumps([ecc(), rows(), number("nvmlDeviceGetRetiredPagesPendingStatus", h), action(), types(), r]), flush=True)
for line in sys.stdin:
    d, seen = Data(), []
    while nvml.nvmlEventSetWait_v2(s, ctypes.byref(d), 0) == 0:
        seen.append([d.type, d.data, d.gi, d.ci])
    print(json.dumps([ecc(), rows(), number("nvmlDeviceGetRetiredPagesPendingStatus", h), action(), types(), seen]), flush=True)
"""
    none = 0xffffffff
    for node, pages, tells in (("t4x2", True, False), ("sm188", False, True)):
        sim.up(node)
        user = subprocess.Popen([sys.executable, "-u", "-c", NVML_PRELUDE + code], env=sim.python_env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)

        def ask():
            user.stdin.write("x\n")
            user.stdin.flush()
            return json.loads(user.stdout.readline())
        rows_or_pages = (lambda pending, failed: [-3, pending]) if pages else (lambda pending, failed: [[pending, failed], -3])
        rest = 0 if tells else -3
        try:
            assert json.loads(user.stdout.readline()) == [0, *rows_or_pages(0, 0), rest, 10, 0]
            sim.ctl("gpu", 0, "ecc", 3)
            sim.ctl("gpu", 0, "xid", 94, 2, 1)
            sim.ctl("gpu", 0, "xid", 31)
            sim.ctl("gpu", 0, "rows", 1, 1)
            sim.ctl("gpu", 0, "action", 2)
            assert ask() == [3, *rows_or_pages(1, 1), 2 if tells else -3, 10,
                             [[2, 0, none, none], [8, 94, 2, 1], [8, 31, none, none]]]
            sim.ctl("gpu", 0, "recover")
            assert ask() == [0, *rows_or_pages(0, 1), rest, 10, []]
            sim.ctl("gpu", 0, "events", 0)
            assert ask() == [0, *rows_or_pages(0, 1), rest, 0, []]
        finally:
            user.kill()
            user.wait()
        sim.ctl("down")
