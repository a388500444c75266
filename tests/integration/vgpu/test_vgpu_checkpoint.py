"""A process that is checkpointed is not charged; it comes back if it fits."""
import pytest

from conftest import containers, nodes
from steps import MIB, Steps, run

SELF = """
def lock():
    ok(cuda.cuCheckpointProcessLock(os.getpid(), None))
def save():
    ok(cuda.cuCheckpointProcessCheckpoint(os.getpid(), None))
def restore(args=None):
    return cuda.cuCheckpointProcessRestore(os.getpid(), args)
def unlock():
    ok(cuda.cuCheckpointProcessUnlock(os.getpid(), None))
"""


@pytest.fixture(scope="module")
def dear_node():
    """Contexts take 100 MiB."""
    yield from nodes(context_mib=100)


@pytest.fixture
def dear(dear_node, short_tmp):
    return containers(dear_node, short_tmp)


def test_the_charge_leaves_and_comes_back(container):
    assert run(container(256 * MIB), SELF + """
start(1)
ok(alloc(6 * MIB)[0])
start(0)
code, p = alloc(20 * MIB)
small, pooled = alloc(1000)[1], c.c_uint64()
ok(cuda.cuMemAllocAsync(c.byref(pooled), c.c_size_t(MIB), None))
early = restore() != 0
stop()
lock()
stop()
save()
stop()
again = cuda.cuCheckpointProcessCheckpoint(os.getpid(), None) != 0
ok(restore())
stop()
unlock()
ok(free(p)); ok(free(small)); ok(cuda.cuMemFree_v2(pooled)); ok(cuda.cuCtxSynchronize())
stop()
print(json.dumps([early, again, used(), alloc(256 * MIB)[0]]))
""") == ([[54, 6], [54, 6], [0, 0], [54, 6], [0, 6]], [True, True, 0, 0])


def test_contexts_are_checkpointed_too(dear):
    """Nor is what is not on the card measured meanwhile."""
    got, said = run(dear(256 * MIB), SELF + """
import time
nvml = c.CDLL("libnvidia-ml.so.1")
card, memory = c.c_void_p(), (c.c_uint64 * 3)()
ok(nvml.nvmlInit_v2())
ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(card)))
start()
code, p = alloc(20 * MIB)
ok(cuda.cuCtxSetLimit(0, c.c_size_t(1024)))
stop()
lock(); save()
time.sleep(0.3)
ok(nvml.nvmlDeviceGetMemoryInfo(card, memory))
stop()
ok(restore()); unlock()
ok(free(p))
stop()
ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
stop()
print(json.dumps(cuda.cuDevicePrimaryCtxRelease_v2(0) != 0))
""")
    assert got == [[120, 0], [0, 0], [100, 0], [0, 0]] and said is True


def test_a_restore_that_does_not_fit_is_refused(container):
    c = container(64 * MIB)
    first = Steps(c, SELF + """
start(1)
ok(alloc(30 * MIB)[0])
start(0)
code, p = alloc(40 * MIB)
lock(); save()
stop()
refused = [restore(), restore()]
stop()
ok(restore())
stop()
unlock()
print(json.dumps([refused, used(), free(p), used()]))
""")
    assert first.line() == "stop\n"
    other = Steps(c, "start()\ncode, p = alloc(60 * MIB)\nok(code)\nstop()\nok(free(p))\nstop()\n")
    assert other.line() == "stop\n"
    first.go()
    assert first.line() == "stop\n"
    other.go()
    assert other.next() == [0, 0]
    first.go()
    assert first.next() == [40, 30]
    assert first.end() == [[2, 2], 40 * MIB, 0, 0]
    assert other.end() is None
    assert c.snapshot()["cards"][0]["refused"] == 2


def test_memory_does_not_come_back_on_another_card(container):
    assert run(container(64 * MIB), SELF + """
class Args(c.Structure):
    _fields_ = [("pairs", c.c_void_p), ("count", c.c_uint), ("rest", c.c_ubyte * 52)]
start()
ok(alloc(40 * MIB)[0])
uuids = [(c.c_ubyte * 16)() for _ in range(2)]
for i in range(2):
    ok(cuda.cuDeviceGetUuid_v2(uuids[i], i))
one, two = map(bytes, uuids)
lock(); save()
swapped, same = c.create_string_buffer(one + two + two + one), c.create_string_buffer(one + one + two + two)
code = restore(c.byref(Args(c.addressof(swapped), 2)))
stop()
ok(restore(c.byref(Args(c.addressof(same), 2))))
stop()
unlock()
print(json.dumps(code))
""") == ([[0, 0], [40, 0]], 801)


def test_a_checkpointed_process_that_dies_owes_nothing(container):
    c = container(64 * MIB)
    s = Steps(c, SELF + "start()\nok(alloc(40 * MIB)[0])\nlock(); save()\nstop()\nos.kill(os.getpid(), 9)\n")
    assert s.next() == [0, 0]
    s.child.wait()
    assert c.python("start()\nprint(json.dumps([used(), alloc(64 * MIB)[0]]))") == [0, 0]
