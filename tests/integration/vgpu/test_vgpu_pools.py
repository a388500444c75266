"""Pools: at every step the region says what the simulated driver says."""
import pytest

from steps import MIB, run

POOLS = r"""
class Pool(c.Structure):
    _fields_ = [("allocation", c.c_int), ("handles", c.c_int), ("location", c.c_int), ("device", c.c_int), ("security", c.c_void_p),
                ("max_size", c.c_size_t), ("usage", c.c_ushort), ("reserved", c.c_ubyte * 54)]
class Location(c.Structure):
    _fields_ = [("type", c.c_int), ("id", c.c_int)]
def pool(device=0, location=1):
    p = c.c_void_p()
    ok(cuda.cuMemPoolCreate(c.byref(p), c.byref(Pool(allocation=1, location=location, device=device))))
    return p
def default(device=0):
    p = c.c_void_p()
    ok(cuda.cuDeviceGetDefaultMemPool(c.byref(p), device))
    return p
def take(size, p=None):
    "(code, pointer)"
    out = c.c_uint64()
    if p is None:
        return cuda.cuMemAllocAsync(c.byref(out), c.c_size_t(size), None), out
    return cuda.cuMemAllocFromPoolAsync(c.byref(out), c.c_size_t(size), p, None), out
def got(size, p=None):
    code, out = take(size, p)
    ok(code)
    return out
def give(p):
    ok(cuda.cuMemFreeAsync(p, None))
def threshold(p, size):
    ok(cuda.cuMemPoolSetAttribute(p, 4, c.byref(c.c_uint64(size))))
"""

SYNCHRONISE = {
    "cuCtxSynchronize": "cuda.cuCtxSynchronize()",
    "cuCtxSynchronize_v2": "cuda.cuCtxSynchronize_v2(ctx)",
    "cuStreamSynchronize": "cuda.cuStreamSynchronize(None)",
    "cuStreamSynchronize_ptsz": "cuda.cuStreamSynchronize_ptsz(None)",
    "cuEventSynchronize": "cuda.cuEventSynchronize(event)",
}


@pytest.mark.parametrize("call", SYNCHRONISE)
def test_what_a_synchronisation_gives_back_is_free_at_once(container, call):
    """Others of the container see it without this process's doing more."""
    assert run(container(128 * MIB), POOLS + f"""
ctx = start()
event = c.c_void_p()
ok(cuda.cuEventCreate(c.byref(event), 0))
a, b = got(32 * MIB), got(32 * MIB)
give(a)
ok(cuda.cuEventRecord(event, None))
stop()
ok({SYNCHRONISE[call]})
stop()
give(b)
threshold(default(), 64 * MIB)
ok({SYNCHRONISE[call]})
stop()
threshold(default(), 2 * MIB)
stop()
ok({SYNCHRONISE[call]})
stop()
""") == ([[64, 0], [32, 0], [32, 0], [32, 0], [0, 0]], None)


def test_a_trim_gives_back_exactly(container):
    assert run(container(128 * MIB), POOLS + """
start()
p = pool()
threshold(p, 2**64 - 1)
all = [got(32 * MIB, p), got(32 * MIB, p), got(1000, p)]
stop()
give(all[0])
ok(cuda.cuMemPoolTrimTo(p, c.c_size_t(80 * MIB)))
stop()
give(all[2])
ok(cuda.cuMemPoolTrimTo(p, c.c_size_t(32 * MIB)))
stop()
ok(cuda.cuMemFree_v2(all[1]))
ok(cuda.cuMemPoolTrimTo(p, c.c_size_t(0)))
stop()
""") == ([[96, 0], [64, 0], [32, 0], [0, 0]], None)


def test_a_destroyed_pool_lives_until_its_last_allocation(container):
    """The driver may give its address to the next pool."""
    assert run(container(256 * MIB), POOLS + """
start()
all = []
for i in range(4):
    p = pool()
    all.append(got(32 * MIB, p))
    ok(cuda.cuMemPoolDestroy(p))
    again = [cuda.cuMemPoolDestroy(p) != 0, take(1, p)[0] != 0]
stop()
for p in all:
    give(p)
    stop()
empty = pool()
give(got(32 * MIB, empty))
ok(cuda.cuMemPoolDestroy(empty))
stop()
print(json.dumps(again))
""") == ([[128, 0], [96, 0], [64, 0], [32, 0], [0, 0], [0, 0]], [True, True])


@pytest.mark.parametrize("by_place", [False, True])
def test_the_pool_that_is_current(container, by_place):
    assert run(container(256 * MIB), POOLS + f"""
start()
p, one = pool(), c.c_void_p()
if {by_place}:
    ok(cuda.cuMemSetMemPool(c.byref(Location(1, 0)), 1, p))
    ok(cuda.cuMemGetMemPool(c.byref(one), c.byref(Location(1, 0)), 1))
else:
    ok(cuda.cuDeviceSetMemPool(0, p))
    ok(cuda.cuDeviceGetMemPool(c.byref(one), 0))
assert one.value == p.value
threshold(p, 2**64 - 1)
a, b = got(20 * MIB), got(20 * MIB, default())
stop()
give(a)
ok(cuda.cuCtxSynchronize())
stop()
give(b)
ok(cuda.cuCtxSynchronize())
stop()
ok(cuda.cuMemPoolDestroy(p))
stop()
got(2 * MIB)
stop()
""") == ([[64, 0], [64, 0], [32, 0], [0, 0], [32, 0]], None)


def test_a_threshold_that_is_lowered(container):
    assert run(container(128 * MIB), POOLS + """
start()
p = default()
threshold(p, 2**64 - 1)
give(got(32 * MIB, p))
ok(cuda.cuCtxSynchronize())
stop()
threshold(p, 0)
ok(cuda.cuCtxSynchronize())
stop()
""") == ([[32, 0], [0, 0]], None)


def test_a_pool_of_a_card_that_is_not_ours(container, node):
    """Its memory is that card's, whatever card the stream is on."""
    c = container(64 * MIB, cards=[node.cards[1]])
    assert run(c, POOLS + """
start(0)
start(1)
p = pool(0)
ok(cuda.cuMemPoolSetAccess(p, None, c.c_size_t(0)))
code = take(16 * MIB, p)[0], take(16 * MIB, default(0))[0]
own = got(16 * MIB)
stop()
print(json.dumps(code))
""") == ([[32]], [2, 2])


def test_a_pool_of_another_card(container):
    assert run(container(64 * MIB), POOLS + """
start(0)
start(1)
p, first = pool(0), default(0)
a, b = got(20 * MIB, p), got(20 * MIB, first)
codes = [take(2 * MIB)[0], take(40 * MIB, p)[0]]
stop()
ok(cuda.cuMemFree_v2(a)); give(b)
ok(cuda.cuMemPoolTrimTo(p, c.c_size_t(0))); ok(cuda.cuMemPoolTrimTo(first, c.c_size_t(0)))
stop()
print(json.dumps(codes))
""") == ([[64, 32], [0, 32]], [0, 2])


@pytest.mark.parametrize("place", [2, 3])
def test_pools_of_host_memory_are_free(container, place):
    assert run(container(64 * MIB), POOLS + f"""
start()
host, named, current = pool(location={place}), c.c_void_p(), c.c_void_p()
ok(cuda.cuMemGetDefaultMemPool(c.byref(named), c.byref(Location({place}, 0)), 1))
ok(cuda.cuMemGetMemPool(c.byref(current), c.byref(Location({place}, 0)), 1))
all = [got(100 * MIB, p) for p in (host, named, current)]
stop()
for p in all:
    give(p)
ok(cuda.cuMemPoolDestroy(host))
ok(alloc(64 * MIB)[0])
stop()
""") == ([[0, 0], [64, 0]], None)


def test_the_highest_values_can_be_reset(container):
    """What a program may set and read of its pools is the driver's own."""
    assert container(256 * MIB).python(POOLS + """
start()
p, value, ours = default(), c.c_uint64(), []
a = got(32 * MIB)
give(got(32 * MIB))
for which in (4, 5, 6, 7, 8):
    ok(cuda.cuMemPoolGetAttribute(p, which, c.byref(value)))
    ours.append(value.value // MIB)
ok(cuda.cuMemPoolSetAttribute(p, 8, c.byref(c.c_uint64(0))))
ok(cuda.cuMemPoolGetAttribute(p, 8, c.byref(value)))
print(json.dumps(ours + [value.value // MIB, cuda.cuMemPoolSetAttribute(p, 5, c.byref(value)) != 0]))
""") == [0, 64, 64, 32, 64, 32, True]
