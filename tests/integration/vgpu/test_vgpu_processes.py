"""NVML's process lists show this container's processes: by their own pids, with what they are charged."""
import json
import os
import subprocess
import sys

import pytest

MIB = 1 << 20

HOLDS = "from driver import *\nstart()\nok(alloc({} * MIB)[0])\nprint(os.getpid(), flush=True)\ninput()"

LISTS = """
    class V1(c.Structure):
        _fields_ = [("pid", c.c_uint), ("used", c.c_ulonglong)]
    class V2(c.Structure):
        _fields_ = [("pid", c.c_uint), ("used", c.c_ulonglong), ("gi", c.c_uint), ("ci", c.c_uint)]
    class Detail(c.Structure):
        _fields_ = [("pid", c.c_uint), ("used", c.c_ulonglong), ("gi", c.c_uint), ("ci", c.c_uint), ("protected", c.c_ulonglong)]
    class Details(c.Structure):
        _fields_ = [("version", c.c_uint), ("mode", c.c_uint), ("count", c.c_uint), ("processes", c.c_void_p)]
    nvml = c.CDLL("libnvidia-ml.so.1")
    ok(nvml.nvmlInit_v2())
    dev = c.c_void_p()
    ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(dev)))
    def listed(name, kind, room=20):
        count, out = c.c_uint(room), (kind * max(room, 1))()
        code = getattr(nvml, name)(dev, c.byref(count), out if room else None)
        return [code, count.value, sorted([p.pid, p.used] for p in out[:min(count.value, room)])]
    def details(mode, room=20):
        out = (Detail * max(room, 1))()
        what = Details(0x01000018, mode, room, c.cast(out, c.c_void_p) if room else None)
        code = nvml.nvmlDeviceGetRunningProcessDetailList(dev, c.byref(what))
        return [code, what.count, sorted([p.pid, p.used] for p in out[:min(what.count, room)])]
"""


def children(*containers_and_sizes):
    """(children, their pids)"""
    started = [c.start([sys.executable, "-c", HOLDS.format(mib)]) for c, mib in containers_and_sizes]
    return started, [int(child.stdout.readline()) for child in started]


def end(started):
    for child in started:
        child.communicate("\n")


def test_every_generation_lists_our_processes_alone(container, node):
    ours, theirs = container(64 * MIB), container(64 * MIB)
    started, pids = children((ours, 20), (ours, 10), (theirs, 30))
    got = ours.python(LISTS + """
    print(json.dumps({
        "compute": [listed("nvmlDeviceGetComputeRunningProcesses" + v, k) for v, k in (("", V1), ("_v2", V2), ("_v3", V2))],
        "others": [listed(f"nvmlDeviceGet{kind}RunningProcesses" + v, k)
                   for kind in ("Graphics", "MPSCompute") for v, k in (("", V1), ("_v2", V2), ("_v3", V2))],
        "details": [details(mode) for mode in range(4)],
    }))
    """)
    end(started)
    mine = [0, 2, sorted([[pids[0], 20 * MIB], [pids[1], 10 * MIB]])]
    assert got["compute"] == [mine] * 3
    assert got["others"] == [[0, 0, []]] * 6
    assert got["details"] == [mine, [0, 0, []], [0, 0, []], mine]


def test_too_little_room_and_wrong_arguments(container):
    c = container(64 * MIB)
    started, pids = children((c, 20), (c, 10))
    got = c.python(LISTS + """
    name = "nvmlDeviceGetComputeRunningProcesses_v3"
    one = listed(name, V2, 1)
    count = c.c_uint(3)
    print(json.dumps([listed(name, V2, 0), one[:2], one[2][0][0], details(0, 0), details(7)[0],
                      nvml.nvmlDeviceGetComputeRunningProcesses_v3(dev, None, None),
                      nvml.nvmlDeviceGetComputeRunningProcesses_v3(dev, c.byref(count), None),
                      nvml.nvmlDeviceGetComputeRunningProcesses_v3(None, c.byref(count), None)]))
    """)
    end(started)
    assert got[:2] == [[7, 2, []], [7, 2]] and got[2] in pids
    assert got[3:] == [[7, 2, []], 2, 2, 2, 2]


def test_the_dead_are_not_listed(container):
    c = container(64 * MIB)
    (child,), _ = children((c, 20))
    child.kill()
    child.wait()
    got = c.python(LISTS + """
    print(json.dumps(listed("nvmlDeviceGetComputeRunningProcesses_v3", V2)))
    """)
    assert got == [0, 0, []]


def test_in_a_pid_namespace_pids_are_its_own(container):
    """The driver speaks of the host's pids; we of those that the container knows."""
    c = container(64 * MIB)
    command = c.command([sys.executable, "-c", "from driver import *\nimport json\nstart()\nok(alloc(20 * MIB)[0])\nif 1:" + LISTS +
                         "    print(os.getpid(), json.dumps(listed('nvmlDeviceGetComputeRunningProcesses_v3', V2)))"])
    done = subprocess.run(["unshare", "-rpf" if command[1] == "-rm" else "-pf", "--mount-proc", *command], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    pid, listed = done.stdout.split(" ", 1)
    assert int(pid) < 100
    assert json.loads(listed) == [0, 1, [[int(pid), 20 * MIB]]]


BUSY = """
from driver import *
start()
ptx = b'.version 6.0\\n.target sm_50\\n.address_size 64\\n.visible .entry busy_ns(.param .u64 p) { ret; }\\n\\0'
m, f = c.c_void_p(), c.c_void_p()
ok(cuda.cuModuleLoadData(c.byref(m), ptx))
ok(cuda.cuModuleGetFunction(c.byref(f), m, b"busy_ns"))
ns = c.c_uint64(400_000_000)
args = (c.c_void_p * 1)(c.cast(c.byref(ns), c.c_void_p))
ok(cuda.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, args, None))
ok(cuda.cuCtxSynchronize())
print(os.getpid(), flush=True)
input()
"""

UTILISATION = """
    class Sample(c.Structure):
        _fields_ = [("pid", c.c_uint), ("at", c.c_ulonglong), ("use", c.c_uint * 4)]
    class Info(c.Structure):
        _fields_ = [("at", c.c_ulonglong), ("pid", c.c_uint), ("use", c.c_uint * 6)]
    class Infos(c.Structure):
        _fields_ = [("version", c.c_uint), ("count", c.c_uint), ("since", c.c_ulonglong), ("processes", c.c_void_p)]
    count, out = c.c_uint(1024), (Sample * 1024)()
    one = nvml.nvmlDeviceGetProcessUtilization(dev, out, c.byref(count), c.c_ulonglong(0))
    more = (Info * 1024)()
    what = Infos(0x01000018, 1024, 0, c.cast(more, c.c_void_p))
    two = nvml.nvmlDeviceGetProcessesUtilizationInfo(dev, c.byref(what))
    print(json.dumps([one, [p.pid for p in out[:count.value]], two, [p.pid for p in more[:what.count]]]))
"""


def test_utilisation_is_of_our_processes_alone(container):
    ours, theirs, idle = container(64 * MIB), container(64 * MIB), container(64 * MIB)
    started = [c.start([sys.executable, "-c", BUSY]) for c in (ours, theirs)]
    pids = [int(child.stdout.readline()) for child in started]
    got, other = ours.python(LISTS + UTILISATION), idle.python(LISTS + UTILISATION)
    bare = idle.python(LISTS + UTILISATION, preload=False)
    end(started)
    assert set(pids) <= set(bare[1]) and set(pids) <= set(bare[3])
    sees_host_pids = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    assert got == ([0, [pids[0]], 0, [pids[0]]] if sees_host_pids else [6, [], 6, []])
    assert other == [6, [], 6, []]


@pytest.mark.parametrize("preload", [True, False])
def test_without_limits_the_lists_are_the_driver_s(container, preload):
    (child,), pids = children((container(64 * MIB), 20))
    got = container().python(LISTS + """
    print(json.dumps(listed("nvmlDeviceGetComputeRunningProcesses", V1)))
    """, preload=preload)
    end([child])
    assert pids[0] in [pid for pid, _ in got[2]]
