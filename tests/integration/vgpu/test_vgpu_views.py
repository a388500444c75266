"""What a program is shown of a card's memory: CUDA and NVML agree to the byte, in every state."""
import os
import sys

import pytest

MIB = 1 << 20

VIEWS = """
nvml = c.CDLL("libnvidia-ml.so.1")
ok(nvml.nvmlInit_v2())
uuids = os.environ["CARDS"].split()
def views(card=0):
    "{what: (total, free, used)}; cuDeviceTotalMem and cuMemGetInfo do not know them all."
    dev, total = c.c_void_p(), c.c_size_t()
    ok(nvml.nvmlDeviceGetHandleByUUID(uuids[card].encode(), c.byref(dev)))
    one, two = (c.c_uint64 * 3)(), (c.c_uint64 * 5)(0x02000028)
    ok(nvml.nvmlDeviceGetMemoryInfo(dev, one))
    ok(nvml.nvmlDeviceGetMemoryInfo_v2(dev, two))
    ok(cuda.cuDeviceTotalMem_v2(c.byref(total), card))
    free_now, total_now = info()
    return {"total": [total.value, total_now, one[0], two[1]], "free": [free_now, one[1], two[3]],
            "used": [one[2], two[4]], "reserved": two[2]}
"""


def agreed(v):
    """(total, free, used), each the same everywhere"""
    assert v["reserved"] == 0
    for name in ("total", "free", "used"):
        assert len(set(v[name])) == 1, v
    return v["total"][0], v["free"][0], v["used"][0]


def run(c, node, code):
    return c.python(VIEWS + code, env={"CARDS": " ".join(node.cards)})


def test_below_the_limit(container, node):
    got = run(container(64 * MIB), node, """
start()
before = views()
ok(alloc(10 * MIB)[0])
p = c.c_uint64()
ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(3 * MIB), None))
print(json.dumps([before, views()]))
""")
    assert [agreed(v) for v in got] == [(64 * MIB, 64 * MIB, 0), (64 * MIB, 22 * MIB, 42 * MIB)]


def test_a_pool_that_gave_back_is_seen_by_all(container, node):
    got = run(container(64 * MIB), node, """
start()
p = c.c_uint64()
ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(3 * MIB), None))
ok(cuda.cuMemFreeAsync(p, None))
ok(cuda.cuCtxSynchronize())
dev, one = c.c_void_p(), (c.c_uint64 * 3)()
ok(nvml.nvmlDeviceGetHandleByUUID(uuids[0].encode(), c.byref(dev)))
ok(nvml.nvmlDeviceGetMemoryInfo(dev, one))  # asked first: nobody has looked at the pool yet
print(json.dumps([list(one), views()]))
""")
    assert got[0] == [64 * MIB, 64 * MIB, 0] and agreed(got[1]) == (64 * MIB, 64 * MIB, 0)


@pytest.mark.parametrize("times", [1, 4])
def test_a_limit_above_the_card(container, node, times):
    """Shown is what programs can have of the card: without the driver's own part, and less what others use."""
    card = node.status()["cards"][0]
    other = container(64 * MIB)
    child = other.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(30 * MIB)[0])\nprint(flush=True)\ninput()"])
    child.stdout.readline()
    c = container(card["total_bytes"] * times)
    got = run(c, node, "start()\nok(alloc(10 * MIB)[0])\nprint(json.dumps(views()))")
    bare = c.python("start()\nprint(json.dumps(info()))", preload=False)
    child.communicate("\n")
    total, free, used = agreed(got)
    assert total == bare[1] < card["total_bytes"]
    assert (free, used) == (bare[0] - 10 * MIB, 10 * MIB)


def test_several_cards_of_different_limits(container, node):
    limits = "hami-vgpu-limits 1\n" + "".join(f"gpu={uuid} memory={(i + 1) * 32 * MIB} cores=50\n"
                                              for i, uuid in enumerate(node.cards)) + "end\n"
    c = container(limits=limits)
    c.make_region(64 * MIB)
    got = run(c, node, """
start(0)
ok(alloc(2 * MIB)[0])
one = views(0)
start(1)
ok(alloc(6 * MIB)[0])
print(json.dumps([one, views(1)]))
""")
    assert [agreed(v) for v in got] == [(32 * MIB, 30 * MIB, 2 * MIB), (64 * MIB, 58 * MIB, 6 * MIB)]


def test_a_limit_below_what_is_used(container, node):
    c = container(64 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(50 * MIB)[0])\nprint(flush=True)\ninput()"])
    child.stdout.readline()
    text = (c.folder / "limits").read_text()
    (c.folder / "limits").write_text(text.replace(str(64 * MIB), str(20 * MIB)))
    got = run(c, node, "start()\nprint(json.dumps([views(), alloc(1)[0]]))")
    child.communicate("\n")
    assert agreed(got[0]) == (20 * MIB, 0, 20 * MIB) and got[1] == 2


def test_with_a_green_context_current(container, node):
    got = run(container(256 * MIB), node, """
start()
resource, desc, g, ctx = c.create_string_buffer(256), c.c_void_p(), c.c_void_p(), c.c_void_p()
ok(cuda.cuDeviceGetDevResource(0, resource, 1))
ok(cuda.cuDevResourceGenerateDesc(c.byref(desc), resource, 1))
ok(cuda.cuGreenCtxCreate(c.byref(g), desc, 0, 1))
ok(cuda.cuCtxFromGreenCtx(c.byref(ctx), g))
ok(cuda.cuCtxSetCurrent(ctx))
ok(alloc(10 * MIB)[0])
print(json.dumps(views()))
""")
    assert agreed(got) == (256 * MIB, 238 * MIB, 18 * MIB)  # 8 MiB are the green context's


def test_a_card_that_is_not_ours_is_full(container, node):
    c = container(64 * MIB, cards=[node.cards[1]])
    total, free, used = agreed(run(c, node, "start(0)\nprint(json.dumps(views()))"))
    assert (free, used) == (0, 0) and total > 64 * MIB


ACCOUNTING = """
class Stats(c.Structure):
    _fields_ = [("gpu", c.c_uint), ("memory", c.c_uint), ("max", c.c_uint64), ("time", c.c_uint64), ("start", c.c_uint64),
                ("running", c.c_uint), ("reserved", c.c_uint * 5)]
class Stats2(c.Structure):
    _fields_ = [("pid", c.c_uint), ("running", c.c_uint), ("gpu", c.c_uint), ("memory", c.c_uint), ("max", c.c_uint64),
                ("rest", c.c_uint64 * 5)]
assert c.sizeof(Stats) == 56 and c.sizeof(Stats2) == 64
dev = c.c_void_p()
ok(nvml.nvmlDeviceGetHandleByUUID(uuids[0].encode(), c.byref(dev)))
count, pids = c.c_uint(64), (c.c_uint * 64)()
ok(nvml.nvmlDeviceGetAccountingPids(dev, c.byref(count), pids))
def stats(pid):
    one, two = Stats(), Stats2(pid=pid)
    codes = [nvml.nvmlDeviceGetAccountingStats(dev, pid, c.byref(one)), nvml.nvmlDeviceGetAccountingStats_v2(dev, c.byref(two))]
    return [codes, [one.max, two.max], [one.running, two.running]]
def sessions(call, words):
    count, out = c.c_uint(64), (c.c_uint * (64 * words))()
    ok(getattr(nvml, call)(dev, c.byref(count), out))
    return sorted(out[i * words + 1] for i in range(count.value))
print(json.dumps([sorted(pids[:count.value]), [stats(int(p)) for p in sys.argv[1:]],
                  sessions("nvmlDeviceGetEncoderSessions", 8), sessions("nvmlDeviceGetFBCSessions", 12)]))
"""


def test_accounting_and_encoders_show_our_processes_alone(container, node):
    ours, theirs = container(64 * MIB), container(64 * MIB)
    code = "from driver import *\nstart()\nok(alloc({} * MIB)[0])\nprint(os.getpid(), flush=True)\ninput()"
    started = [c.start([sys.executable, "-c", code.format(mib)]) for c, mib in ((ours, 20), (theirs, 30))]
    pids = [int(child.stdout.readline()) for child in started]
    env = {"CARDS": " ".join(node.cards)}
    got, bare = (ours.python(VIEWS + ACCOUNTING, env=env, preload=preload, args=map(str, pids)) for preload in (True, False))
    for child in started:
        child.communicate("\n")
    assert set(pids) <= set(bare[0]) == set(bare[2]) == set(bare[3])
    assert bare[1] == [[[0, 0], [mib * MIB] * 2, [1, 1]] for mib in (20, 30)]
    hidden = [[6, 6], [0, 0], [0, 0]]
    if os.readlink("/proc/self/ns/pid") == "pid:[4026531836]":
        assert got == [[pids[0]], [bare[1][0], hidden], [pids[0]], [pids[0]]]
    else:
        assert got == [[], [hidden, hidden], [], []]
