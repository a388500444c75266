"""Who keeps the memory of a handle: the region says what the simulated driver says, at every step."""
from steps import MIB, Steps, run

VMM = r"""
class Location(c.Structure):
    _fields_ = [("type", c.c_int), ("id", c.c_int)]
class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("location", Location), ("rest", c.c_int * 4)]
class Team(c.Structure):
    _fields_ = [("devices", c.c_uint), ("size", c.c_size_t), ("handles", c.c_uint64), ("flags", c.c_uint64)]
zero = c.c_uint64(0)
def create(size, device=0, handles=0):
    h = c.c_uint64()
    code = cuda.cuMemCreate(c.byref(h), c.c_size_t(size), c.byref(Prop(1, handles, Location(1, device))), zero)
    return h if code == 0 else None
def reserve(size):
    va = c.c_uint64()
    ok(cuda.cuMemAddressReserve(c.byref(va), c.c_size_t(size), c.c_size_t(0), zero, zero))
    return va.value
def map_at(va, size, h, offset=0):
    return cuda.cuMemMap(c.c_uint64(va), c.c_size_t(size), c.c_size_t(offset), h, zero)
def unmap(va, size):
    return cuda.cuMemUnmap(c.c_uint64(va), c.c_size_t(size))
def release(h):
    return cuda.cuMemRelease(h)
def team(size, devices=(0, 1), handles=0, count=2):
    mc = c.c_uint64()
    ok(cuda.cuMulticastCreate(c.byref(mc), c.byref(Team(count, size, handles, 0))))
    for d in devices:
        ok(cuda.cuMulticastAddDevice(mc, d))
    return mc
def bind(mc, offset, h, size, memory_offset=0):
    return cuda.cuMulticastBindMem(mc, c.c_size_t(offset), h, c.c_size_t(memory_offset), c.c_size_t(size), zero)
def bind_address(mc, offset, va, size):
    return cuda.cuMulticastBindAddr(mc, c.c_size_t(offset), c.c_uint64(va), c.c_size_t(size), zero)
def unbind(mc, device, offset, size):
    return cuda.cuMulticastUnbind(mc, device, c.c_size_t(offset), c.c_size_t(size))
"""


def test_parts_and_several_mappings(container):
    got = run(container(64 * MIB), VMM + """
start()
h, other = create(16 * MIB), create(8 * MIB, 1)
va = reserve(64 * MIB)
ok(map_at(va, 4 * MIB, h, 12 * MIB))
ok(map_at(va + 4 * MIB, 16 * MIB, h))
ok(map_at(va + 20 * MIB, 8 * MIB, other))
ok(map_at(va + 28 * MIB, 16 * MIB, h))
refused = [map_at(va, 4 * MIB, h) != 0, unmap(va, 2 * MIB) != 0, unmap(va + 2 * MIB, 4 * MIB) != 0]
ok(release(h)); ok(release(other))
refused.append(release(h) != 0)
stop()
ok(unmap(va + 4 * MIB, 24 * MIB))
stop()
ok(unmap(va, 4 * MIB))
stop()
ok(unmap(va + 28 * MIB, 16 * MIB))
stop()
print(json.dumps(refused))
""")
    assert got == ([[16, 8], [16, 0], [16, 0], [0, 0]], [True] * 4)


def test_a_retained_handle_keeps_the_memory(container):
    got = run(container(64 * MIB), VMM + """
start()
h, again = create(16 * MIB), c.c_uint64()
va = reserve(16 * MIB)
ok(map_at(va, 16 * MIB, h))
ok(release(h))
ok(cuda.cuMemRetainAllocationHandle(c.byref(again), c.c_void_p(va + 3 * MIB)))
ok(unmap(va, 16 * MIB))
stop()
ok(map_at(va, 8 * MIB, again))
ok(release(again))
stop()
ok(unmap(va, 8 * MIB))
stop()
""")
    assert got == ([[16, 0], [16, 0], [0, 0]], None)


def test_what_is_bound_to_a_multicast_object_is_charged_until_it_is_unbound(switched):
    got = run(switched(64 * MIB), VMM + """
start()
mc, h, other = team(32 * MIB), create(16 * MIB), create(8 * MIB, 1)
ok(bind(mc, 0, h, 16 * MIB))
ok(bind(mc, 16 * MIB, h, 4 * MIB, 12 * MIB))
ok(bind(mc, 0, other, 8 * MIB))
codes = [bind(mc, 0, h, 16 * MIB) != 0]
ok(release(h)); ok(release(other))
stop()
codes += [unbind(mc, 0, 0, 4 * MIB) != 0, unbind(mc, 1, 16 * MIB, 4 * MIB) != 0]
ok(unbind(mc, 0, 0, 16 * MIB))
stop()
ok(unbind(mc, 0, 16 * MIB, 4 * MIB))
stop()
ok(unbind(mc, 1, 0, 8 * MIB))
stop()
ok(release(mc))
print(json.dumps(codes))
""")
    assert got == ([[16, 8], [16, 8], [0, 8], [0, 0]], [True] * 3)


def test_the_end_of_a_multicast_object_returns_what_was_bound(switched):
    got = run(switched(64 * MIB), VMM + """
start()
mc, second, h, other = team(32 * MIB), team(32 * MIB), create(16 * MIB), create(8 * MIB, 1)
va = reserve(32 * MIB)
ok(bind(mc, 0, h, 16 * MIB)); ok(bind(second, 0, other, 8 * MIB)); ok(bind(second, 8 * MIB, h, 2 * MIB))
ok(map_at(va, 32 * MIB, mc))
ok(release(h)); ok(release(other)); ok(release(mc))
stop()
ok(unmap(va, 32 * MIB))
stop()
ok(release(second))
stop()
""")
    assert got == ([[16, 8], [16, 8], [0, 0]], None)


def test_memory_bound_by_its_address(switched):
    got = run(switched(64 * MIB), VMM + """
start()
mc, h, va = team(32 * MIB), create(16 * MIB), reserve(16 * MIB)
ok(map_at(va, 16 * MIB, h))
ok(release(h))
ok(bind_address(mc, 0, va + 4 * MIB, 8 * MIB))
wrong = bind_address(mc, 16 * MIB, va + 12 * MIB, 8 * MIB) != 0
ok(unmap(va, 16 * MIB))
stop()
ok(unbind(mc, 0, 0, 8 * MIB))
stop()
print(json.dumps(wrong))
""")
    assert got == ([[16, 0], [0, 0]], True)


def test_bound_memory_counts_against_the_limit(switched):
    got = switched(64 * MIB).python(VMM + """
start()
mc, h = team(64 * MIB), create(60 * MIB)
ok(bind(mc, 0, h, 60 * MIB))
ok(release(h))
refused = create(6 * MIB)
ok(unbind(mc, 0, 0, 60 * MIB))
print(json.dumps([refused, used(), create(64 * MIB) is not None]))
""")
    assert got == [None, 0, True]


def test_a_shared_multicast_object_keeps_what_was_bound(switched):
    """Another process may have it: what was bound is charged until it is unbound, or its process ends."""
    made = switched(64 * MIB)
    owner = Steps(made, VMM + """
start()
mc, h, more, fd = team(32 * MIB, (0,), 1), create(16 * MIB, 0, 1), create(2 * MIB, 0, 1), c.c_int()
ok(cuda.cuMemExportToShareableHandle(c.byref(fd), mc, 1, zero))
print(os.getpid(), fd.value, flush=True)
input()
ok(bind(mc, 0, h, 16 * MIB)); ok(bind(mc, 16 * MIB, more, 2 * MIB))
ok(unbind(mc, 0, 16 * MIB, 2 * MIB))
ok(release(h)); ok(release(more)); ok(release(mc))
stop()
""")
    pid, fd = owner.line().split()
    other = Steps(made, VMM + f"""
start(1)
fd = os.open("/proc/{pid}/fd/{fd}", os.O_RDWR)
mc, h = c.c_uint64(), create(8 * MIB, 1, 1)
ok(cuda.cuMemImportFromShareableHandle(c.byref(mc), c.c_void_p(fd), 1))
ok(cuda.cuMulticastAddDevice(mc, 1))
ok(bind(mc, 0, h, 8 * MIB))
stop()
ok(unbind(mc, 1, 0, 8 * MIB))
ok(bind(mc, 4 * MIB, h, 8 * MIB))
ok(release(h)); ok(release(mc))
print(json.dumps(used() // MIB), flush=True)
input()
""")
    assert other.next() == [18, 8]
    assert other.line() == "8\n"
    owner.go()
    assert owner.next() == [16, 8]
    owner.end()
    other.go()
    other.end()
    assert made.python("start(0)\na = used()\nstart(1)\nprint(json.dumps([a, used()]))") == [0, 0]
