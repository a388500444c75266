"""Memory of graphs: charged when it comes, with the launch, for what the device's graphs have reserved."""
import json
import select
import sys

import pytest

MIB = 1 << 20

GRAPHS = r"""
class Params(c.Structure):
    _fields_ = [("allocation", c.c_int), ("handles", c.c_int), ("location", c.c_int), ("device", c.c_int), ("security", c.c_void_p),
                ("max_size", c.c_size_t), ("usage", c.c_ushort), ("reserved", c.c_ubyte * 54), ("access", c.c_void_p),
                ("access_count", c.c_size_t), ("size", c.c_size_t), ("ptr", c.c_uint64)]
assert c.sizeof(Params) == 120
def graph(*sizes, free=True, device=0):
    "A graph that allocates each size, and frees each before the next: (graph, addresses)"
    g, last, ptrs = c.c_void_p(), None, []
    ok(cuda.cuGraphCreate(c.byref(g), 0))
    for size in sizes:
        p = Params(allocation=1, location=1, device=device, size=size)
        node, after = c.c_void_p(), (c.c_void_p * 1)(last.value if last else None)
        ok(cuda.cuGraphAddMemAllocNode(c.byref(node), g, after if last else None, c.c_size_t(1 if last else 0), c.byref(p)))
        last = node
        ptrs.append(p.ptr)
        if free:
            gone = c.c_void_p()
            ok(cuda.cuGraphAddMemFreeNode(c.byref(gone), g, (c.c_void_p * 1)(node.value), c.c_size_t(1), c.c_uint64(p.ptr)))
            last = gone
    return g, ptrs
def instantiate(g, flags=0):
    x = c.c_void_p()
    return cuda.cuGraphInstantiateWithFlags(c.byref(x), g, c.c_uint64(flags)), x
def launch(x, call="cuGraphLaunch"):
    code = getattr(cuda, call)(x, None)
    if code == 0:
        ok(cuda.cuCtxSynchronize())
    return code
def reserved(device=0):
    value = c.c_uint64()
    ok(cuda.cuDeviceGetGraphMemAttribute(device, 2, c.byref(value)))
    return value.value
"""

INSTANTIATE = """
def by(name, g):
    x = c.c_void_p()
    words = {"cuGraphInstantiate": (None, None, c.c_size_t(0)), "cuGraphInstantiate_v2": (None, None, c.c_size_t(0)),
             "cuGraphInstantiateWithFlags": (c.c_uint64(0),)}.get(name, ((c.c_uint64 * 4)(),))
    ok(getattr(cuda, name)(c.byref(x), g, *words))
    return x
"""


@pytest.mark.parametrize("instantiate", ["cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
                                         "cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz"])
@pytest.mark.parametrize("launch", ["cuGraphLaunch", "cuGraphLaunch_ptsz"])
def test_a_launch_is_charged_and_refused(container, instantiate, launch):
    got = container(64 * MIB).python(GRAPHS + INSTANTIATE + f"""
start()
fits, big = (by({instantiate!r}, graph(size)[0]) for size in (40 * MIB, 80 * MIB))
before = used()
codes = [launch(fits, {launch!r}), launch(big, {launch!r})]
held = used()
other = alloc(26 * MIB)[0], alloc(24 * MIB)[0]
print(json.dumps([before, codes, held == reserved() == 40 * MIB, other, launch(fits, {launch!r}), used()]))
""")
    assert got == [0, [0, 2], True, [2, 0], 0, 64 * MIB]


def test_the_region_and_the_driver_agree_and_trim_returns(container, node):
    c = container(256 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + GRAPHS + """
start()
code, x = instantiate(graph(10 * MIB, 3000, 30 * MIB)[0])
ok(code)
for _ in range(3):
    ok(launch(x))
print(os.getpid(), reserved(), flush=True)
input()
ok(cuda.cuDeviceGraphMemTrim(0))
print(reserved(), used(), flush=True)
input()
"""])
    pid, reserved = map(int, child.stdout.readline().split())
    assert c.snapshot()["cards"][0]["used"] == reserved > 0
    assert [p["bytes"] for p in node.status()["cards"][0]["processes"] if p["pid"] == pid] == [reserved]
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "0 0\n"
    child.communicate("\n")


def test_what_lives_on_after_the_launch_stays_charged(container):
    got = container(64 * MIB).python(GRAPHS + """
start()
g, (p,) = graph(40 * MIB, free=False)
code, x = instantiate(g)
ok(code)
ok(launch(x))
ok(cuda.cuDeviceGraphMemTrim(0))
live = used()
again = launch(x)  # not before it is freed
ok(free(p))
ok(cuda.cuDeviceGraphMemTrim(0))
print(json.dumps([live, again != 0, used(), alloc(64 * MIB)[0]]))
""")
    assert got == [40 * MIB, True, 0, 0]


def test_a_graph_that_reuses_its_memory_needs_less_the_second_time(container):
    """The first launch must fit with all its allocations; later ones with what it took."""
    got = container(96 * MIB).python(GRAPHS + """
start()
code, x = instantiate(graph(30 * MIB, 30 * MIB, 30 * MIB)[0])
ok(code)
first, took = launch(x), reserved()
ok(cuda.cuDeviceGraphMemTrim(0))
code, p = alloc(96 * MIB - 30 * MIB)
ok(code)
second = launch(x)
print(json.dumps([first, took, second, used()]))
""")
    assert got == [0, 30 * MIB, 0, 96 * MIB]


def test_upload_and_destroyed_graphs(container):
    got = container(64 * MIB).python(GRAPHS + """
start()
g, _ = graph(40 * MIB)
code, x = instantiate(g)
ok(code)
ok(cuda.cuGraphUpload(x, None))
ok(cuda.cuGraphUpload_ptsz(x, None))
uploaded = used() == reserved()
ok(cuda.cuGraphExecDestroy(x))
ok(cuda.cuGraphDestroy(g))
ok(cuda.cuDeviceGraphMemTrim(0))
print(json.dumps([uploaded, used(), alloc(64 * MIB)[0]]))
""")
    assert got == [True, 0, 0]


def test_the_end_of_the_last_context_returns_graph_memory(container):
    got = container(64 * MIB).python(GRAPHS + """
start()
code, x = instantiate(graph(40 * MIB)[0])
ok(code)
ok(launch(x))
full = used()
ok(cuda.cuDevicePrimaryCtxReset_v2(0))
start()
print(json.dumps([full, used(), alloc(64 * MIB)[0]]))
""")
    assert got == [40 * MIB, 0, 0]


def test_a_captured_allocation_is_charged_at_its_launch(container):
    got = container(64 * MIB).python(GRAPHS + """
start()
s, g, p = c.c_void_p(), c.c_void_p(), c.c_uint64()
ok(cuda.cuStreamCreate(c.byref(s), 1))
ok(cuda.cuStreamBeginCapture_v2(s, 0))
ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(40 * MIB), s))
ok(cuda.cuMemFreeAsync(p, s))
ok(cuda.cuStreamEndCapture(s, c.byref(g)))
captured = used()
code, x = instantiate(g)
ok(code)
ready = used()
ok(launch(x))
ok(alloc(20 * MIB)[0])
print(json.dumps([captured, ready, used(), alloc(6 * MIB)[0]]))
""")
    assert got == [0, 0, 60 * MIB, 2]


def test_a_graph_without_memory_nodes_passes_at_the_limit(container):
    got = container(64 * MIB).python(GRAPHS + """
start()
ok(alloc(64 * MIB)[0])
g, node = c.c_void_p(), c.c_void_p()
ok(cuda.cuGraphCreate(c.byref(g), 0))
ok(cuda.cuGraphAddEmptyNode(c.byref(node), g, None, c.c_size_t(0)))
code, x = instantiate(g)
memory, y = instantiate(graph(2 * MIB)[0])
print(json.dumps([code, launch(x), memory, launch(y), launch(x)]))
""")
    assert got == [0, 0, 0, 2, 0]


def test_each_device_pays_for_its_own_graphs(container):
    c = container(64 * MIB)
    got = c.python(GRAPHS + """
start(1)
code, x = instantiate(graph(40 * MIB, device=1)[0])
ok(code)
ok(launch(x))
print(json.dumps([used(), reserved(1), reserved(0)]))
start(0)
""")
    assert got == [40 * MIB, 40 * MIB, 0]


CHILDREN = GRAPHS + r"""
class NodeParams(c.Structure):
    _fields_ = [("type", c.c_int), ("zero", c.c_int * 3), ("words", c.c_uint64 * 29), ("last", c.c_uint64)]
assert c.sizeof(NodeParams) == 256
def move(parent, child, call="cuGraphAddNode"):
    "The child graph becomes a node of the parent."
    node, p = c.c_void_p(), NodeParams(type=4)
    p.words[0], p.words[1] = child.value, 1
    args = (c.byref(node), parent, None, *([None] if call.endswith("_v2") else []), c.c_size_t(0), c.byref(p))
    ok(getattr(cuda, call)(*args))
def empty_graph():
    g = c.c_void_p()
    ok(cuda.cuGraphCreate(c.byref(g), 0))
    return g
"""


@pytest.mark.parametrize("call", ["cuGraphAddNode", "cuGraphAddNode_v2"])
def test_memory_nodes_of_children_are_counted_before_the_launch(container, node, call):
    """Two levels down, beside a node of the parent's own."""
    c = container(64 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + CHILDREN + f"""
start()
def nested(*sizes):
    (inner, _), (middle, _), (outer, _) = (graph(size) for size in sizes)
    move(middle, inner, {call!r})
    move(outer, middle, {call!r})
    code, x = instantiate(outer)
    ok(code)
    return x
fits, big = nested(20 * MIB, 10 * MIB, 20 * MIB), nested(30 * MIB, 20 * MIB, 20 * MIB)
codes = [launch(fits), launch(big)]
print(os.getpid(), codes == [0, OUT_OF_MEMORY], reserved(), used(), flush=True)
input()
"""])
    pid, refused, reserved, used = child.stdout.readline().split()
    assert refused == "True" and int(reserved) == int(used) <= 50 * MIB
    assert [p["bytes"] for p in node.status()["cards"][0]["processes"] if p["pid"] == int(pid)] == [int(reserved)]
    s = c.snapshot()["cards"][0]
    assert s["used"] == int(reserved) and s["peak"] <= 64 * MIB
    child.communicate("\n")


def test_a_copied_child_has_no_memory(container):
    """The driver copies only graphs without memory nodes: there is nothing to count."""
    got = container(64 * MIB).python(CHILDREN + """
start()
ok(alloc(64 * MIB)[0])
node, parent, plain = c.c_void_p(), empty_graph(), empty_graph()
ok(cuda.cuGraphAddEmptyNode(c.byref(node), plain, None, c.c_size_t(0)))
ok(cuda.cuGraphAddChildGraphNode(c.byref(node), parent, None, c.c_size_t(0), plain))
memory = cuda.cuGraphAddChildGraphNode(c.byref(node), parent, None, c.c_size_t(0), graph(2 * MIB)[0])
code, x = instantiate(parent)
print(json.dumps([code, launch(x), memory]))
""")
    assert got == [0, 0, 801]


@pytest.mark.parametrize("launches", [2, 5])
def test_memory_that_a_launch_gives_back_first_is_not_counted_twice(container, launches):
    """AUTO_FREE_ON_LAUNCH: what the last launch left in use serves the next one."""
    got = container(64 * MIB).python(GRAPHS + f"""
start()
code, x = instantiate(graph(40 * MIB, free=False)[0], 1)
ok(code)
codes = [launch(x) for _ in range({launches})]
full = used()
other = instantiate(graph(30 * MIB)[0])[1]
print(json.dumps([codes, full, launch(other), reserved(), used(), launch(instantiate(graph(20 * MIB)[0])[1])]))
""")
    assert got == [[0] * launches, 40 * MIB, 2, 40 * MIB, 40 * MIB, 0]


def test_an_instantiation_that_uploads_is_charged_before(container):
    c = container(64 * MIB)
    got = c.python(GRAPHS + """
start()
def upload(g):
    x, params = c.c_void_p(), (c.c_uint64 * 4)(2)
    return cuda.cuGraphInstantiateWithParams(c.byref(x), g, params), x
good, x = upload(graph(40 * MIB)[0])
held = used(), reserved()
bad, y = upload(graph(80 * MIB)[0])
high = c.c_uint64()
ok(cuda.cuDeviceGetGraphMemAttribute(0, 3, c.byref(high)))
print(json.dumps([good, held, launch(x), bad, y.value, high.value, used()]))
""")
    assert got == [0, [40 * MIB, 40 * MIB], 0, 2, None, 40 * MIB, 40 * MIB]
    assert c.snapshot()["cards"][0]["peak"] == 40 * MIB


RACE = GRAPHS + """
import json, random, threading
ctx = start()
LIMIT = 64 * MIB
over, codes = [], []
def racer(number):
    rng = random.Random(number)
    ok(cuda.cuCtxSetCurrent(ctx))
    mine = [instantiate(graph(size * MIB)[0])[1] for size in (10, 24, 40)]
    stream = c.c_void_p()
    ok(cuda.cuStreamCreate(c.byref(stream), 1))
    for _ in range(300):
        what = rng.randrange(8)
        if what == 0:
            ok(cuda.cuDeviceGraphMemTrim(0))
        elif what == 1:
            code, p = alloc(rng.choice([4, 20, 30]) * MIB)
            if code == 0:
                ok(free(p))
        else:
            codes.append(cuda.cuGraphLaunch(rng.choice(mine), stream))
"""


def test_launches_that_race_for_free_graph_memory_never_pass_the_limit(container, node):
    """By the region, and by the driver's own books, looked at all the while."""
    c = container(64 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + RACE + """
threads = [threading.Thread(target=racer, args=(i,)) for i in range(6)]
print(os.getpid(), flush=True)
[t.start() for t in threads]
[t.join() for t in threads]
ok(cuda.cuCtxSynchronize())
print(json.dumps([sorted(set(codes)), used(), reserved()]), flush=True)
ok(cuda.cuDeviceGraphMemTrim(0))
print(used(), alloc(64 * MIB)[0], flush=True)
input()
"""])
    pid, most = int(child.stdout.readline()), 0
    while child.poll() is None and not select.select([child.stdout], [], [], 0)[0]:
        most = max([most, *[p["bytes"] for p in node.status()["cards"][0]["processes"] if p["pid"] == pid]])
    codes, used, reserved = json.loads(child.stdout.readline())
    assert set(codes) <= {0, 2} and 0 in codes and used == reserved
    assert child.stdout.readline() == "0 0\n"
    assert 0 < most <= 64 * MIB
    assert c.snapshot()["cards"][0]["peak"] <= 64 * MIB
    child.communicate("\n")


def test_a_race_refuses_nothing_that_fits_one_after_the_other(container):
    """Each launch fits beside all others: waiting must not become a refusal."""
    got = container(64 * MIB).python(GRAPHS + """
import threading
ctx = start()
codes = []
def racer():
    ok(cuda.cuCtxSetCurrent(ctx))
    x = instantiate(graph(60 * MIB)[0])[1]
    for _ in range(200):
        codes.append(cuda.cuGraphLaunch(x, None))
threads = [threading.Thread(target=racer) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(json.dumps([sorted(set(codes)), used(), reserved()]))
""")
    assert got == [[0], 60 * MIB, 60 * MIB]


def test_a_destroyed_graph_s_need_is_not_its_successor_s(container):
    """The driver gives the same handle again, to a graph without memory nodes: that passes at the limit."""
    got = container(64 * MIB).python(GRAPHS + """
start()
plain, node = c.c_void_p(), c.c_void_p()
ok(cuda.cuGraphCreate(c.byref(plain), 0))
ok(cuda.cuGraphAddEmptyNode(c.byref(node), plain, None, c.c_size_t(0)))
seen, codes, again = set(), [], 0
for _ in range(50):
    g, _ = graph(2 * MIB)
    x = instantiate(g)[1]
    seen.add(x.value)
    ok(cuda.cuGraphExecDestroy(x))
    ok(cuda.cuGraphDestroy(g))
ok(alloc(64 * MIB)[0])
for _ in range(50):
    x = instantiate(plain)[1]
    again += x.value in seen
    codes.append(launch(x))
print(json.dumps([again > 0, sorted(set(codes))]))
""")
    assert got == [True, [0]]
