"""Every legal free of every kind of memory gives back exactly what it cost, on any context."""
import pytest

from steps import MIB, run

FREES = r"""
class Pool(c.Structure):
    _fields_ = [("allocation", c.c_int), ("handles", c.c_int), ("location", c.c_int), ("device", c.c_int), ("security", c.c_void_p),
                ("max_size", c.c_size_t), ("usage", c.c_ushort), ("reserved", c.c_ubyte * 54)]
class Node(c.Structure):
    _fields_ = [("pool", Pool), ("access", c.c_void_p), ("accesses", c.c_size_t), ("bytes", c.c_size_t), ("ptr", c.c_uint64)]
size, zero = c.c_size_t(16 * MIB), c.c_uint64(0)
def plain(p):
    return cuda.cuMemAlloc_v2(c.byref(p), size)
def small(p):
    return cuda.cuMemAlloc_v2(c.byref(p), c.c_size_t(1000))
def pitch(p):
    return cuda.cuMemAllocPitch_v2(c.byref(p), c.byref(c.c_size_t()), c.c_size_t(4000), c.c_size_t(4096), 4)
def pooled(p):
    return cuda.cuMemAllocAsync(c.byref(p), size, None)
def explicit(p):
    pool = c.c_void_p()
    ok(cuda.cuMemPoolCreate(c.byref(pool), c.byref(Pool(allocation=1, location=1))))
    return cuda.cuMemAllocFromPoolAsync(c.byref(p), size, pool, None)
def graph(p):
    g, node, exe = c.c_void_p(), c.c_void_p(), c.c_void_p()
    wanted = Node(Pool(allocation=1, location=1), None, 0, 16 * MIB, 0)
    ok(cuda.cuGraphCreate(c.byref(g), 0))
    ok(cuda.cuGraphAddMemAllocNode(c.byref(node), g, None, c.c_size_t(0), c.byref(wanted)))
    ok(cuda.cuGraphInstantiateWithFlags(c.byref(exe), g, zero))
    ok(cuda.cuGraphLaunch(exe, None))
    p.value = wanted.ptr
    return 0
def gives(how, p):
    if how == "cuMemFree_v2":
        return cuda.cuMemFree_v2(p)
    return getattr(cuda, how)(p, None)
def settle():
    ok(cuda.cuCtxSynchronize())
    ok(cuda.cuDeviceGraphMemTrim(0))
"""

COST = {"plain": 16, "small": 2, "pitch": 16, "pooled": 32, "explicit": 32, "graph": 16}
HOWS = ["cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", COST)
def test_each_free_of_each_kind(container, kind, how):
    assert run(container(64 * MIB), FREES + f"""
start()
p = c.c_uint64()
ok({kind}(p))
stop()
ok(gives({how!r}, p))
settle()
stop()
again = gives({how!r}, p) != 0
settle()
stop()
print(json.dumps([again, alloc(64 * MIB)[0]]))
""") == ([[COST[kind], 0], [0, 0], [0, 0]], [True, 0])


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", COST)
def test_on_another_card_s_context(container, kind, how):
    assert run(container(64 * MIB), FREES + f"""
first = start()
p, q = c.c_uint64(), c.c_uint64()
ok({kind}(p))
start(1)
ok(plain(q))
stop()
ok(gives({how!r}, p))
ok(cuda.cuCtxSetCurrent(first))
settle()
stop()
ok(gives({how!r}, q))
stop()
""") == ([[COST[kind], 16], [0, 16], [0, 0]], None)
