"""Oversubscription: what the limit has room for and the card has not is managed memory, where the limit file asks for it."""
import os
import pathlib
import signal
import sys

import pytest

from conftest import limit_file

NODES = pathlib.Path(__file__).resolve().parents[3] / "sim/nodes"
MIB = 1 << 20
LIMIT = 256 * MIB
LEFT = 64 * MIB

HOLD = """
from driver import *
start(int(sys.argv[1]))
left, _ = info()
ok(alloc(left - int(sys.argv[2]))[0])
print(info()[0], flush=True)
input()
"""


@pytest.fixture
def full(node, container):
    """full(device): somebody else holds all of the card but 64 MiB."""
    holders = []

    def fill(device=0):
        holders.append(container(region=False).start([sys.executable, "-c", HOLD, str(device), str(LEFT)], preload=False))
        assert holders[-1].stdout.readline() == f"{LEFT}\n"

    yield fill
    for holder in holders:
        holder.communicate("\n")


@pytest.fixture
def slice_of(container):
    """A container with a slice of each card that the card need not have."""
    def make(memory=LIMIT, oversubscribe=1):
        return container(memory, cores=100, lines=[f"oversubscribe={oversubscribe}"])
    return make


# What there is to know of a pointer: managed, kind of memory, device, context's device; preferred place, who maps it.
TELL = """
def tell(ptr):
    out = []
    for attribute in (8, 2, 9):
        value = c.c_int()
        ok(cuda.cuPointerGetAttribute(c.byref(value), attribute, c.c_uint64(ptr)))
        out.append(value.value)
    for attribute in (2, 3):
        value = c.c_int(-7)
        cuda.cuMemRangeGetAttribute(c.byref(value), c.c_size_t(4), attribute, c.c_uint64(ptr), c.c_size_t(1))
        out.append(value.value)
    return out
"""
MANAGED_ON = {device: [1, 2, device, device, device] for device in (0, 1)}
OF_THE_CARD = [0, 2, 0, -7, -7]


def test_off_unless_the_limit_file_asks(slice_of, full):
    full()
    c = slice_of(oversubscribe=0)
    assert c.python("start()\nprint(json.dumps([alloc(100 * MIB)[0], info()]))") == [2, [LEFT, LIMIT]]
    card = c.snapshot()["cards"][0]
    assert (card["spilled"], card["spilled_bytes"], card["refused"], card["used"]) == (0, 0, 0, 0)


def test_beyond_the_card_and_within_the_limit(slice_of, full):
    full()
    c = slice_of()
    got = c.python(TELL + """
        start()
        fits, spilled = alloc(32 * MIB), alloc(100 * MIB + 1)
        seen = [info(), tell(fits[1]), tell(spilled[1])]
        over = alloc(123 * MIB)[0]
        text = c.create_string_buffer(b"kept")
        ok(cuda.cuMemcpyHtoD_v2(c.c_uint64(spilled[1] + 100 * MIB - 8), text, c.c_size_t(4)))
        back = c.create_string_buffer(5)
        ok(cuda.cuMemcpyDtoH_v2(back, c.c_uint64(spilled[1] + 100 * MIB - 8), c.c_size_t(4)))
        ok(free(spilled[1]))
        print(json.dumps([fits[0], spilled[0], seen, over, back.value.decode(), used(), free(fits[1]), used()]))
    """.replace("\n        ", "\n"))
    assert got == [0, 0, [[LIMIT - 134 * MIB, LIMIT], OF_THE_CARD, MANAGED_ON[0]], 2, "kept", 32 * MIB, 0, 0]
    card = c.snapshot()["cards"][0]
    assert (card["spilled"], card["spilled_bytes"], card["refused"]) == (1, 102 * MIB, 1)


def test_charged_and_counted_on_its_own_card(slice_of, full):
    full(1)
    c = slice_of()
    got = c.python(TELL + "start(0)\nok(alloc(100 * MIB)[0])\nstart(1)\np = alloc(100 * MIB)[1]\nprint(json.dumps([tell(p), used()]))")
    assert got == [MANAGED_ON[1], 100 * MIB]
    cards = c.snapshot()["cards"]
    assert [(card["spilled"], card["peak"]) for card in cards] == [(0, 100 * MIB), (1, 100 * MIB)]


def test_rows(slice_of, full):
    full()
    c = slice_of()
    got = c.python(TELL + """
start()
p, pitch = c.c_uint64(), c.c_size_t()
codes = [cuda.cuMemAllocPitch_v2(c.byref(p), c.byref(pitch), c.c_size_t(1000), c.c_size_t(rows), 4)
         for rows in (300 * 1024, 100 * 1024)]
print(json.dumps([codes, pitch.value, tell(p.value), used(), free(p.value), used()]))
""")
    assert got == [[2, 0], 1024, MANAGED_ON[0], 100 * MIB, 0, 0]
    assert c.snapshot()["cards"][0]["spilled"] == 1


def test_small_ones(slice_of, full):
    """Each in a page that the card no longer has."""
    full()
    c = slice_of()
    got = c.python("""
        start()
        ok(alloc(64 * MIB)[0])
        small = [alloc(1000) for _ in range(10)]
        most = used()
        ok(max(free(p) for _, p in small))
        print(json.dumps([max(code for code, _ in small), most > 64 * MIB, most <= 84 * MIB, used()]))
    """)
    assert got == [0, True, True, 64 * MIB]
    card = c.snapshot()["cards"][0]
    assert (card["spilled"], card["spilled_bytes"]) == (10, 10000)


@pytest.mark.parametrize("way", ["cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeAsync_ptsz", "release", "reset"])
def test_given_back_exactly(slice_of, full, way):
    full()
    got = slice_of().python("""
        start()
        ptrs = [alloc(size * MIB)[1] for size in (30, 100, 90)]
        most = used()
        if sys.argv[1] == "release":
            ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
        elif sys.argv[1] == "reset":
            ok(cuda.cuDevicePrimaryCtxReset_v2(0))
        else:
            ok(max(cuda[sys.argv[1]](c.c_uint64(p), None) for p in ptrs))
        start()
        print(json.dumps([most, used(), alloc(256 * MIB)[0]]))
    """, args=[way])
    assert got == [220 * MIB, 0, 0]


def test_a_killed_process_gives_back(slice_of, full):
    full()
    c = slice_of()
    child = c.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(200 * MIB)[0])\nprint(os.getpid(), flush=True)\ninput()"])
    os.kill(int(child.stdout.readline()), signal.SIGKILL)
    child.wait()
    assert c.python("start()\nprint(json.dumps([alloc(256 * MIB)[0], used()]))") == [0, LIMIT]


def test_what_cannot_spill_is_out_of_memory(slice_of, full):
    """Memory that is the card's by its nature: pools, physical handles, arrays; and IPC of what has spilled."""
    full()
    c = slice_of()
    got = c.python("""
        start()
        p, h, array = c.c_uint64(), c.c_uint64(), c.c_void_p()
        prop = (c.c_int * 8)(1, 0, 1, 0, 0, 0, 0, 0)
        shape = (c.c_uint64 * 5)(8192, 4096, 0, 0x20 | 1 << 32, 0)
        codes = [cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(100 * MIB), None),
                 cuda.cuMemCreate(c.byref(h), c.c_size_t(100 * MIB), prop, c.c_uint64(0)),
                 cuda.cuArray3DCreate_v2(c.byref(array), shape)]
        left = used()
        handle = c.create_string_buffer(64)
        shared = cuda.cuIpcGetMemHandle(handle, c.c_uint64(alloc(100 * MIB)[1]))
        print(json.dumps([codes, left, shared != 0]))
    """)
    assert got == [[2, 2, 2], 0, True]
    assert c.snapshot()["cards"][0]["spilled"] == 1


def test_a_slice_larger_than_the_card(slice_of, node):
    """The views show the slice; so much can be had."""
    physical = node.status()["cards"][0]["total_bytes"]
    memory = physical * 2
    got = slice_of(memory).python("""
        nvml = c.CDLL("libnvidia-ml.so.1")
        ok(nvml.nvmlInit_v2())
        start()
        total, dev, one = c.c_size_t(), c.c_void_p(), (c.c_uint64 * 3)()
        ok(cuda.cuDeviceTotalMem_v2(c.byref(total), 0))
        code, p = alloc(int(sys.argv[1]))
        ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(dev)))
        ok(nvml.nvmlDeviceGetMemoryInfo(dev, one))
        print(json.dumps([code, total.value, info(), list(one), alloc(2 * MIB)[0], free(p), used()]))
    """, args=[str(memory)])
    assert got == [0, memory, [0, memory], [memory, 0, memory], 2, 0, 0]


def test_a_card_without_page_faults_cannot(node_of, container_on, short_tmp):
    """Managed memory has to fit such a card too."""
    description = short_tmp / "old.yaml"
    description.write_text((NODES / "sm20.yaml").read_text().replace('compute_capability: "8.6"', 'compute_capability: "5.2"'))
    old = node_of(description)
    c = container_on(old, 100)
    total = old.status()["cards"][0]["total_bytes"]
    (c.folder / "limits").write_text(limit_file(old.cards, 2 * total, 100, "oversubscribe=1"))
    got = c.python("start()\nprint(json.dumps([alloc(int(sys.argv[1]))[0] for _ in range(3)]))", args=[str(total + MIB)])
    s = c.snapshot()
    assert got == [2, 2, 2] and s["cards"][0]["spilled"] == 0
    assert s["troubles"] == 1 and "no concurrent managed access" in s["last_trouble"]


@pytest.mark.parametrize("memory, code", [("256m", 0), (None, 2)])
def test_by_hami_s_environment(container, full, short_tmp, memory, code):
    """Without a limit of memory there is no slice that could exceed the card."""
    full()
    env = {"CUDA_OVERSUBSCRIBE": "true", "CUDA_DEVICE_SM_LIMIT": "50", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache",
           **({"CUDA_DEVICE_MEMORY_LIMIT": memory} if memory else {})}
    c = container()
    assert c.python("start()\nprint(json.dumps(alloc(100 * MIB)[0]))", env=env) == code
    assert c.snapshot(short_tmp / "hami-vgpu.region")["cards"][0]["spilled"] == (1 if code == 0 else 0)
