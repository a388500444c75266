"""The memory limit, on the simulated node: to the byte of what the card gives (pages of 2 MiB)."""
import os
import signal
import sys

import pytest

MIB = 1 << 20

def test_over_the_limit_is_out_of_memory(container):
    got = container(64 * MIB).python("""
        start()
        a = alloc(60 * MIB)
        b = alloc(4 * MIB)
        c1 = alloc(1)
        small = info()
        ok(free(b[1]))
        d = alloc(6 * MIB)
        e = alloc(4 * MIB)
        print(json.dumps({"codes": [a[0], b[0], c1[0], d[0], e[0]], "info": small, "used": used()}))
    """)
    assert got["codes"] == [0, 0, 2, 2, 0]
    assert got["info"] == [0, 64 * MIB]
    assert got["used"] == 64 * MIB


def test_small_allocations_share_their_pages(container):
    got = container(16 * MIB).python("""
        start()
        before = used()
        ptrs = [alloc(1000)[1] for _ in range(100)]
        one = used()
        more = [alloc(MIB // 2)[1] for _ in range(8)]
        ok(max(free(p) for p in ptrs + more))
        print(json.dumps([before, one, used(), alloc(16 * MIB)[0]]))
    """)
    assert got == [0, 2 * MIB, 0, 0]


def test_the_region_and_the_driver_agree(container, node):
    c = container(100 * MIB)
    child = c.start([sys.executable, "-c", """
from driver import *
start()
import random
random.seed(5)
held = {}
for i in range(400):
    if held and random.random() < 0.45:
        ok(free(held.popitem()[0]))
    else:
        size = random.choice([1, 512, 70000, MIB - 1, MIB, 2 * MIB, 2 * MIB + 1, 5 * MIB])
        code, p = alloc(size)
        assert code in (0, OUT_OF_MEMORY)
        if code == 0:
            held[p] = size
print(used(), flush=True)
input()
"""])
    used = int(child.stdout.readline())
    card = c.snapshot()["cards"][0]
    assert card["used"] == used
    assert card["peak"] <= 100 * MIB
    driver = {p["pid"]: p["bytes"] - p["context_bytes"] for p in node.status()["cards"][0]["processes"]}
    assert used in driver.values()
    child.communicate("\n")


@pytest.mark.parametrize("call", ["cuMemAllocManaged", "cuMemAllocPitch_v2", "cuMemAllocAsync", "cuMemAllocAsync_ptsz",
                                  "cuMemCreate"])
def test_every_way_to_allocate_is_held(container, call):
    got = container(64 * MIB).python("""
        start()
        call = sys.argv[1]
        def one(size):
            p = c.c_uint64()
            if call == "cuMemAllocManaged":
                return cuda.cuMemAllocManaged(c.byref(p), c.c_size_t(size), 1), p.value
            if call == "cuMemAllocPitch_v2":
                pitch = c.c_size_t()
                return cuda.cuMemAllocPitch_v2(c.byref(p), c.byref(pitch), c.c_size_t(4096), c.c_size_t(size // 4096), 4), p.value
            if call == "cuMemCreate":
                prop = (c.c_int * 8)(1, 0, 1, 0, 0, 0, 0, 0)
                return cuda.cuMemCreate(c.byref(p), c.c_size_t(size), prop, c.c_uint64(0)), p.value
            return getattr(cuda, call)(c.byref(p), c.c_size_t(size), None), p.value
        def give(p):
            if call == "cuMemCreate":
                return cuda.cuMemRelease(c.c_uint64(p))
            if call.startswith("cuMemAllocAsync"):
                return cuda.cuMemFreeAsync(c.c_uint64(p), None)
            return free(p)
        first = [one(32 * MIB) for _ in range(3)]
        full = used()
        ok(max(give(p) for code, p in first if code == 0))
        ok(cuda.cuCtxSynchronize())
        print(json.dumps([[code for code, _ in first], full, used(), one(64 * MIB)[0]]))
    """, args=[call])
    assert got == [[0, 0, 2], 64 * MIB, 0, 0]


def test_a_pool_is_charged_for_what_it_holds(container):
    got = container(128 * MIB).python("""
        start()
        pool = c.c_void_p()
        ok(cuda.cuDeviceGetDefaultMemPool(c.byref(pool), 0))
        keep = c.c_uint64(2**64 - 1)
        ok(cuda.cuMemPoolSetAttribute(pool, 4, c.byref(keep)))
        p = c.c_uint64()
        ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(96 * MIB), None))
        ok(cuda.cuMemFreeAsync(p, None))
        ok(cuda.cuCtxSynchronize())
        kept = used()
        refused = alloc(64 * MIB)[0]
        again = cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(96 * MIB), None)
        ok(cuda.cuMemFree_v2(p))
        ok(cuda.cuMemPoolTrimTo(pool, c.c_size_t(0)))
        print(json.dumps([kept, refused, again, used(), alloc(128 * MIB)[0]]))
    """)
    assert got == [96 * MIB, 2, 0, 0, 0]


def test_a_pool_that_grows_past_the_limit_is_refused(container):
    got = container(40 * MIB).python("""
        start()
        p, q = c.c_uint64(), c.c_uint64()
        codes = [cuda.cuMemAllocAsync(c.byref(x), c.c_size_t(20 * MIB), None) for x in (p, q)]
        ok(cuda.cuMemFreeAsync(p, None))
        ok(cuda.cuCtxSynchronize())
        print(json.dumps([codes, used()]))
    """)
    assert got == [[0, 2], 0]


def test_a_pool_s_step_past_the_limit_is_refused(container):
    """20 MiB fit, but the pool takes 32: not for longer than the call, though it would keep what it has."""
    got = container(24 * MIB).python("""
        start()
        p, pool = c.c_uint64(), c.c_void_p()
        ok(cuda.cuDeviceGetDefaultMemPool(c.byref(pool), 0))
        ok(cuda.cuMemPoolSetAttribute(pool, 4, c.byref(c.c_uint64(1 << 40))))
        code = cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(20 * MIB), None)
        print(json.dumps([code, p.value, used(), alloc(24 * MIB)[0]]))
    """)
    assert got == [2, 0, 0, 0]


@pytest.mark.parametrize("then", ["cuMemAllocAsync", "cuMemAlloc_v2"])
def test_what_a_pool_gave_back_unseen_can_be_had(container, then):
    got = container(64 * MIB).python("""
        start()
        p = c.c_uint64()
        ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(64 * MIB), None))
        ok(cuda.cuMemFreeAsync(p, None))
        ok(cuda.cuCtxSynchronize())
        print(json.dumps(getattr(cuda, sys.argv[1])(c.byref(p), c.c_size_t(64 * MIB), None)))
    """, args=[then])
    assert got == 0


def test_a_free_that_fails_keeps_the_charge(container):
    got = container(64 * MIB).python("""
        start()
        code, p = alloc(60 * MIB)
        ok(code)
        failed = cuda.cuMemFreeAsync(c.c_uint64(p), c.c_void_p(0xdead0))
        print(json.dumps([failed != 0, used(), free(p), used(), free(p) != 0, used()]))
    """)
    assert got == [True, 60 * MIB, 0, 0, True, 0]


def test_a_mapping_keeps_a_released_handle_charged(container):
    got = container(64 * MIB).python("""
        start()
        prop = (c.c_int * 8)(1, 0, 1, 0, 0, 0, 0, 0)
        size = c.c_size_t(32 * MIB)
        h, va = c.c_uint64(), c.c_uint64()
        ok(cuda.cuMemCreate(c.byref(h), size, prop, c.c_uint64(0)))
        ok(cuda.cuMemAddressReserve(c.byref(va), size, c.c_size_t(0), c.c_uint64(0), c.c_uint64(0)))
        ok(cuda.cuMemMap(va, size, c.c_size_t(0), h, c.c_uint64(0)))
        ok(cuda.cuMemRelease(h))
        mapped = used()
        refused = alloc(40 * MIB)[0]
        ok(cuda.cuMemUnmap(va, size))
        print(json.dumps([mapped, refused, used()]))
    """)
    assert got == [32 * MIB, 2, 0]


@pytest.mark.parametrize("end", ["reset", "release", "destroy"])
def test_the_end_of_a_context_returns_its_memory(container, end):
    got = container(64 * MIB).python("""
        start()
        own = c.c_void_p()
        if sys.argv[1] == "destroy":
            ok(cuda.cuCtxCreate_v2(c.byref(own), 0, 0))
        ok(alloc(60 * MIB)[0])
        ok(alloc(1000)[0])
        full = used()
        if sys.argv[1] == "reset":
            ok(cuda.cuDevicePrimaryCtxReset_v2(0))
        elif sys.argv[1] == "release":
            ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
        else:
            ok(cuda.cuCtxDestroy_v2(own))
        start()
        print(json.dumps([full, used(), alloc(64 * MIB)[0]]))
    """, args=[end])
    assert got == [62 * MIB, 0, 0]


def test_two_processes_share_one_limit(container):
    c = container(64 * MIB)
    first = c.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(40 * MIB)[0])\nprint(flush=True)\ninput()"])
    first.stdout.readline()
    got = c.python("start()\nprint(json.dumps([alloc(26 * MIB)[0], alloc(24 * MIB)[0], info()]))")
    assert got == [2, 0, [0, 64 * MIB]]
    first.communicate("\n")
    assert c.python("start()\nprint(json.dumps(alloc(64 * MIB)[0]))") == 0


def test_a_killed_process_gives_back_at_once(container):
    c = container(64 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(60 * MIB)[0])\nprint(os.getpid(), flush=True)\ninput()"])
    os.kill(int(child.stdout.readline()), signal.SIGKILL)
    child.wait()
    assert c.snapshot()["cards"][0]["used"] == 60 * MIB
    assert c.python("start()\nprint(json.dumps([alloc(64 * MIB)[0], used()]))") == [0, 64 * MIB]
    assert c.snapshot()["reaped"] >= 1


def test_a_forked_child_starts_with_nothing(container):
    got = container(64 * MIB).python("""
        start()
        ok(alloc(20 * MIB)[0])
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            import subprocess
            code = "from driver import *\\nimport json\\nstart()\\nprint(json.dumps([alloc(50 * MIB)[0], alloc(44 * MIB)[0]]))"
            os.dup2(w, 1)
            os.execv(sys.executable, [sys.executable, "-c", code])
        os.waitpid(pid, 0)
        codes = json.loads(os.read(r, 100))
        print(json.dumps([codes, used()]))
    """)
    assert got == [[2, 0], 20 * MIB]


def test_a_forked_child_without_exec_has_a_slot_of_its_own(container):
    c = container(64 * MIB)
    got = c.python("""
        import json
        def nvml_memory():
            nvml = c.CDLL("libnvidia-ml.so.1")
            ok(nvml.nvmlInit_v2())
            dev, one = c.c_void_p(), (c.c_uint64 * 3)()
            ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(dev)))
            ok(nvml.nvmlDeviceGetMemoryInfo(dev, one))
            return list(one)
        start()
        ok(alloc(20 * MIB)[0])
        r, w = os.pipe()
        if os.fork() == 0:
            os.write(w, json.dumps(nvml_memory()).encode())
            os.kill(os.getpid(), 9)
        os.wait()
        print(json.dumps([json.loads(os.read(r, 100)), used()]))
    """)
    assert got == [[64 * MIB, 44 * MIB, 20 * MIB], 20 * MIB]
    s = c.snapshot()
    assert s["attached"] == 2 and s["reaped"] == 1


def test_any_uid_is_held(container):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    c = container(64 * MIB)
    for folder in (c.folder.parent, c.node.folder):
        folder.chmod(0o755)
    got = c.python("""
        os.setgid(65534)
        os.setuid(65534)
        start()
        print(json.dumps([alloc(60 * MIB)[0], alloc(6 * MIB)[0], used()]))
    """)
    assert got == [0, 2, 60 * MIB]


def test_exec_returns_the_old_image_s_charge(container):
    got = container(64 * MIB).python("""
        start()
        ok(alloc(60 * MIB)[0])
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-c", "from driver import *\\nimport json\\nstart()\\nprint(json.dumps([used(), alloc(64 * MIB)[0]]))"])
    """)
    assert got == [0, 0]


def test_views_agree_and_show_the_slice(container):
    got = container(64 * MIB).python("""
        nvml = c.CDLL("libnvidia-ml.so.1")
        start()
        ok(alloc(10 * MIB)[0])
        total = c.c_size_t()
        ok(cuda.cuDeviceTotalMem_v2(c.byref(total), 0))
        ok(nvml.nvmlInit_v2())
        dev = c.c_void_p()
        ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(dev)))
        one = (c.c_uint64 * 3)()
        ok(nvml.nvmlDeviceGetMemoryInfo(dev, one))
        two = (c.c_uint64 * 5)(0x02000028)
        ok(nvml.nvmlDeviceGetMemoryInfo_v2(dev, two))
        print(json.dumps([total.value, info(), list(one), list(two)[1:]]))
    """)
    t, u = 64 * MIB, 10 * MIB
    assert got == [t, [t - u, t], [t, t - u, u], [t, 0, t - u, u]]


def test_a_limit_above_the_card_shows_the_card(container, node):
    physical = node.status()["cards"][0]["total_bytes"]
    got = container(physical * 4).python("""
        start()
        ok(alloc(2 * MIB)[0])
        print(json.dumps(info()))
    """)
    assert 0 < got[0] < got[1] <= physical


@pytest.mark.parametrize("limits, says", [
    ("hami-vgpu-limits 1\ngpu=GPU-x memory=1g cores=5\nend\n", "line 2"),
    ("hami-vgpu-limits 1\ngpu=GPU-x memory=1000 cores=5\n", "cut"),
    ("hami-vgpu-limits 9\nend\n", "version 9"),
    ("", "no line"),
])
def test_a_bad_limit_file_refuses_everything(container, limits, says):
    c = container(64 * MIB)
    (c.folder / "limits").write_text(limits)
    assert c.python("start()\nprint(json.dumps([alloc(1)[0], alloc(4 * MIB)[0], info()[0]]))") == [2, 2, 0]
    s = c.snapshot()
    assert s["troubles"] >= 1 and says in s["last_trouble"]


def test_a_card_that_is_not_in_the_file_is_not_ours(container, node):
    c = container(64 * MIB, cards=[node.cards[1]])
    got = c.python("start(0)\na = alloc(1)[0]\nstart(1)\nprint(json.dumps([a, alloc(1)[0]]))")
    assert got == [2, 0]
    assert node.cards[0] in c.snapshot()["last_trouble"]


@pytest.mark.parametrize("harm", ["missing", "truncated", "noise", "version", "enlarged"])
def test_a_harmed_region_refuses_and_does_not_crash(container, harm):
    c = container(64 * MIB)
    if harm == "missing":
        c.region.unlink()
    elif harm == "truncated":
        os.truncate(c.region, 5000)
    elif harm == "noise":
        c.region.write_bytes(os.urandom(c.region.stat().st_size))
    elif harm == "version":
        data = bytearray(c.region.read_bytes())
        data[8] = 77
        c.region.write_bytes(data)
    else:
        os.truncate(c.region, c.region.stat().st_size * 2)
    assert c.python("start()\nprint(json.dumps([alloc(1)[0], info()[0]]))") == [2, 0]
    assert not c.region.exists() or harm != "missing"


def test_a_region_deleted_under_a_process_is_noticed(container):
    c = container(64 * MIB)
    got = c.python("""
        start()
        ok(alloc(10 * MIB)[0])
        os.unlink("/run/hami-vgpu/usage/region")
        a = alloc(64 * MIB)[0]
        print(json.dumps([a, alloc(1)[0]]))
    """)
    assert got == [2, 2]


def test_no_limit_file_and_no_environment_means_no_limit(container):
    c = container()
    (c.folder / "usage").rmdir()
    got = c.python("start()\nprint(json.dumps([info()[1] > 10**10, alloc(1 << 30)[0]]))")
    assert got == [True, 0]


@pytest.mark.parametrize("text, size", [("64m", 64 * MIB), ("65536K", 64 * MIB), ("67108864", 64 * MIB), ("1G", 1 << 30)])
def test_hami_s_environment_limits(container, text, size):
    got = container().python("start()\nprint(json.dumps([info()[1], alloc(64 * MIB + 1)[0], alloc(64 * MIB)[0]]))",
                             env={"CUDA_DEVICE_MEMORY_LIMIT": text})
    assert got == [size, 2 if size == 64 * MIB else 0, 0]


@pytest.mark.parametrize("text", ["abc", "3000MB", "010m", "-1", "0.5g", "1Gi", "1 g", "99999999999999999999"])
def test_a_bad_environment_limit_refuses_and_says_why(container, short_tmp, text):
    cache = short_tmp / "cache"
    cache.mkdir()
    c = container()
    got = c.python("start()\nprint(json.dumps([alloc(1)[0], alloc(1)[0]]))",
                   env={"CUDA_DEVICE_MEMORY_LIMIT_1": text, "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{cache}/x.cache"})
    assert got == [2, 2]
    s = c.snapshot(cache / "hami-vgpu.region")
    assert s["troubles"] == 1
    assert "CUDA_DEVICE_MEMORY_LIMIT_1" in s["last_trouble"] and text[:20] in s["last_trouble"]


def test_environment_limits_of_each_card_and_of_several_processes(container, short_tmp, node):
    env = {"CUDA_DEVICE_MEMORY_LIMIT": "64m", "CUDA_DEVICE_MEMORY_LIMIT_1": "32m",
           "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"}
    c = container()
    first = c.start([sys.executable, "-c", "from driver import *\nstart(1)\nok(alloc(20 * MIB)[0])\nprint(flush=True)\ninput()"],
                    env=env)
    first.stdout.readline()
    got = c.python("start(0)\na = info()[1]\nstart(1)\nprint(json.dumps([a, info(), alloc(14 * MIB)[0], alloc(12 * MIB)[0]]))",
                   env=env)
    assert got == [64 * MIB, [12 * MIB, 32 * MIB], 2, 0]
    first.communicate("\n")
    s = c.snapshot(short_tmp / "hami-vgpu.region")
    assert sorted(card["uuid"] for card in s["cards"]) == sorted(node.cards)


def test_threads_race_for_the_last_pages(container):
    c = container(64 * MIB)
    got = c.python("""
        import threading
        ctx = start()
        won = []
        def race():
            ok(cuda.cuCtxSetCurrent(ctx))
            for _ in range(200):
                code, p = alloc(4 * MIB)
                if code == 0:
                    won.append(used())
                    ok(free(p))
        threads = [threading.Thread(target=race) for _ in range(24)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(json.dumps([max(won), used()]))
    """)
    assert got[0] <= 64 * MIB and got[1] == 0
    assert c.snapshot()["cards"][0]["peak"] <= 64 * MIB


def test_many_processes_race_and_die(container):
    c = container(64 * MIB)
    code = """
from driver import *
import random, sys
start()
random.seed(int(sys.argv[1]))
held = []
for i in range(3000):
    if held and random.random() < 0.5:
        ok(free(held.pop()))
    else:
        code, p = alloc(random.choice([1000, MIB, 3 * MIB]))
        assert code in (0, OUT_OF_MEMORY)
        if code == 0:
            held.append(p)
if int(sys.argv[1]) % 3 == 0:
    os.kill(os.getpid(), 9)
"""
    children = [c.start([sys.executable, "-c", code, str(i)]) for i in range(12)]
    codes = [child.wait(timeout=120) for child in children]
    assert sorted(set(codes)) in ([-9, 0], [0, 137]), [child.stderr.read() for child in children]
    assert c.python("start()\nprint(json.dumps([used(), alloc(64 * MIB)[0]]))") == [0, 0]
    assert c.snapshot()["cards"][0]["peak"] <= 64 * MIB
