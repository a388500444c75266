"""Shared memory is charged once, to its owner; what an importer does changes nothing."""
import sys

import pytest

MIB = 1 << 20

SHARED = r"""
class Handle(c.Structure):
    _fields_ = [("bytes", c.c_ubyte * 64)]
class Pool(c.Structure):
    _fields_ = [("allocation", c.c_int), ("handles", c.c_int), ("location", c.c_int), ("device", c.c_int), ("security", c.c_void_p),
                ("max_size", c.c_size_t), ("usage", c.c_ushort), ("reserved", c.c_ubyte * 54)]
"""


@pytest.mark.parametrize("call", ["cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"])
def test_ipc(container, call):
    c = container(64 * MIB)
    owner = c.start([sys.executable, "-c", "from driver import *\n" + SHARED + """
start()
code, p = alloc(20 * MIB)
h = Handle()
ok(cuda.cuIpcGetMemHandle(c.byref(h), c.c_uint64(p)))
print(bytes(h.bytes).hex(), flush=True)
input()
ok(free(p))
print(used(), flush=True)
input()
"""])
    handle = owner.stdout.readline().strip()
    got = c.python(SHARED + f"""
start()
h, p = Handle(), c.c_uint64()
h.bytes[:] = bytes.fromhex({handle!r})
before = used()
ok(cuda.{call}(c.byref(p), h, 1))
opened = used()
own = alloc(44 * MIB)
more = alloc(2 * MIB)[0]
wrong = cuda.cuIpcCloseMemHandle(c.c_uint64(own[1]))
kept = used()
ok(cuda.cuIpcCloseMemHandle(p))
closed = used()
again = cuda.cuIpcCloseMemHandle(p)
ok(free(own[1]))
print(json.dumps([before, opened, own[0], more, wrong != 0, kept, closed, again != 0, used()]))
""")
    assert got == [20 * MIB, 20 * MIB, 0, 2, True, 64 * MIB, 64 * MIB, True, 20 * MIB]
    owner.stdin.write("\n")
    owner.stdin.flush()
    assert owner.stdout.readline() == "0\n"
    owner.communicate("\n")


def test_a_handle_imported_by_its_owner(container):
    got = container(64 * MIB).python("""
start()
prop = (c.c_int * 8)(1, 1, 1, 0, 0, 0, 0, 0)
size, h, h2, fd, va = c.c_size_t(20 * MIB), c.c_uint64(), c.c_uint64(), c.c_int(), c.c_uint64()
ok(cuda.cuMemCreate(c.byref(h), size, prop, c.c_uint64(0)))
ok(cuda.cuMemExportToShareableHandle(c.byref(fd), h, 1, c.c_uint64(0)))
ok(cuda.cuMemImportFromShareableHandle(c.byref(h2), c.c_void_p(fd.value), 1))
ok(cuda.cuMemAddressReserve(c.byref(va), size, c.c_size_t(0), c.c_uint64(0), c.c_uint64(0)))
ok(cuda.cuMemMap(va, size, c.c_size_t(0), h2, c.c_uint64(0)))
imported = used()
ok(cuda.cuMemUnmap(va, size))
ok(cuda.cuMemRelease(h2))
released = used()
ok(cuda.cuMemRelease(h))
print(json.dumps([imported, released, used()]))
""")
    assert got == [20 * MIB, 20 * MIB, 0]


@pytest.mark.parametrize("free", ["cuMemFreeAsync(p, None)", "cuMemFreeAsync_ptsz(p, None)", "cuMemFree_v2(p)"])
def test_a_pool_and_a_pointer_of_another_process(container, free):
    c = container(64 * MIB)
    owner = c.start([sys.executable, "-c", "from driver import *\n" + SHARED + """
start()
pool, fd, p, data = c.c_void_p(), c.c_int(), c.c_uint64(), Handle()
ok(cuda.cuMemPoolCreate(c.byref(pool), c.byref(Pool(allocation=1, handles=1, location=1))))
ok(cuda.cuMemAllocFromPoolAsync(c.byref(p), c.c_size_t(32 * MIB), pool, None))
ok(cuda.cuCtxSynchronize())
ok(cuda.cuMemPoolExportToShareableHandle(c.byref(fd), pool, 1, c.c_uint64(0)))
ok(cuda.cuMemPoolExportPointer(c.byref(data), p))
print(os.getpid(), fd.value, bytes(data.bytes).hex(), flush=True)
input()
"""])
    pid, fd, data = owner.stdout.readline().split()
    got = c.python(SHARED + f"""
start()
fd = os.open("/proc/{pid}/fd/{fd}", os.O_RDWR)
pool, p, data = c.c_void_p(), c.c_uint64(), Handle()
data.bytes[:] = bytes.fromhex({data!r})
before = used()
ok(cuda.cuMemPoolImportFromShareableHandle(c.byref(pool), c.c_void_p(fd), 1, c.c_uint64(0)))
ok(cuda.cuMemPoolImportPointer(c.byref(p), pool, c.byref(data)))
imported = used()
ok(cuda.{free})
ok(cuda.cuCtxSynchronize())
freed = used()
ok(cuda.cuMemPoolDestroy(pool))
print(json.dumps([before, imported, freed, used(), alloc(34 * MIB)[0], alloc(32 * MIB)[0]]))
""")
    assert got == [32 * MIB] * 4 + [2, 0]
    owner.communicate("\n")


def test_external_memory(container):
    got = container(64 * MIB).python("""
start()
file = os.memfd_create("external")
os.ftruncate(file, 8 * MIB)
class Buffer(c.Structure):
    _fields_ = [("offset", c.c_uint64), ("size", c.c_uint64), ("rest", c.c_uint * 17)]
m = (c.c_ubyte * 104)()
c.c_int.from_buffer(m, 0).value = 1
c.c_int.from_buffer(m, 8).value = file
c.c_uint64.from_buffer(m, 24).value = 8 * MIB
x, p = c.c_void_p(), c.c_uint64()
ok(cuda.cuImportExternalMemory(c.byref(x), m))
ok(cuda.cuExternalMemoryGetMappedBuffer(c.byref(p), x, c.byref(Buffer(size=8 * MIB))))
imported = used()
ok(free(p.value))
ok(cuda.cuDestroyExternalMemory(x))
print(json.dumps([imported, used(), alloc(64 * MIB)[0]]))
""")
    assert got == [0, 0, 0]
