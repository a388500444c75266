"""Contexts and code take memory too: measured, charged, refused."""
import os
import subprocess
import sys

import pytest

from conftest import BUILD, nodes

MIB = 1 << 20
CONTEXT = 104

MODULE = r"""
PTX = b'.version 6.0\n.target sm_50\n.address_size 64\n.visible .entry busy_ns(.param .u64 p) { ret; }\n\0'
def load():
    m = c.c_void_p()
    return cuda.cuModuleLoadData(c.byref(m), PTX), m
def library():
    m = c.c_void_p()
    return cuda.cuLibraryLoadData(c.byref(m), PTX, None, None, 0, None, None, 0), m
def raw(name):
    "The driver's function, not ours: what runtimes reach by private tables."
    return c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_size_t)(addresses(BUILD / "sim/libcuda.so.1")[name])
def behind_our_back(mib):
    p = c.c_uint64()
    ok(raw("cuMemAlloc_v2")(c.addressof(p), mib * MIB))
    return p.value
def behind_our_back_free(p):
    return c.CFUNCTYPE(c.c_int, c.c_uint64)(addresses(BUILD / "sim/libcuda.so.1")["cuMemFree_v2"])(p)
"""


@pytest.fixture(scope="module")
def node():
    yield from nodes(context_mib=CONTEXT)


def run(c, code, **kwargs):
    return c.python(f"exec({MODULE!r})\n" + code, **kwargs)


def used_of(c):
    return c.snapshot()["cards"][0]["used"]


def test_a_context_is_charged_and_given_back(container):
    c = container(256 * MIB)
    got = run(c, """
start()
one = used()
own = c.c_void_p()
ok(cuda.cuCtxCreate_v2(c.byref(own), 0, 0))
two = used()
ok(cuda.cuCtxDestroy_v2(own))
three = used()
ok(cuda.cuDevicePrimaryCtxReset_v2(0))
start()
print(json.dumps([one, two, three, used()]))
""")
    assert got == [CONTEXT * MIB, 2 * CONTEXT * MIB, CONTEXT * MIB, CONTEXT * MIB]


@pytest.mark.parametrize("call", ["cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuDevicePrimaryCtxRetain"])
def test_a_context_that_does_not_fit_is_refused_and_gone(container, node, call):
    c = container((CONTEXT - 2) * MIB)
    child = c.start([sys.executable, "-c", f"""
from driver import *
ok(cuda.cuInit(0))
x = c.c_void_p()
name = {call!r}
args = {{"cuCtxCreate_v2": (0, 0), "cuCtxCreate_v3": (None, 0, 0, 0), "cuCtxCreate_v4": (None, 0, 0),
        "cuDevicePrimaryCtxRetain": (0,)}}[name]
codes = [getattr(cuda, name)(c.byref(x), *args) for _ in range(3)]
print(os.getpid(), codes == [OUT_OF_MEMORY] * 3 and not x.value, flush=True)
input()
"""])
    pid, refused = child.stdout.readline().split()
    assert refused == "True"
    assert used_of(c) == 0
    assert [p for p in node.status()["cards"][0]["processes"] if p["pid"] == int(pid) and p["bytes"] > 0] == []
    assert c.snapshot()["cards"][0]["refused"] == 3
    child.communicate("\n")


@pytest.mark.parametrize("why", ["no region", "another card"])
def test_where_nothing_may_be_allocated_code_and_contexts_take_nothing(container, node, why):
    c = container(1 << 30, cards=[node.cards[1]] if why == "another card" else None)
    if why == "no region":
        c.region.unlink()
    got = run(c, """
start()
context = c.c_void_p()
codes = [cuda.cuCtxCreate_v2(c.byref(context), 0, 0), load()[0], cuda.cuCtxSetLimit(2, c.c_size_t(64 * MIB))]
print(json.dumps([codes, context.value]))
""")
    assert got == [[2, 2, 2], None]


def test_contexts_of_several_processes_share_the_limit(container):
    c = container((2 * CONTEXT + 10) * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\nstart()\nprint(flush=True)\ninput()"])
    child.stdout.readline()
    got = run(c, "start()\nprint(json.dumps([used(), alloc(12 * MIB)[0], alloc(10 * MIB)[0]]))")
    third = run(c, "ok(cuda.cuInit(0))\nx = c.c_void_p()\nprint(json.dumps(cuda.cuDevicePrimaryCtxRetain(c.byref(x), 0)))")
    assert got == [2 * CONTEXT * MIB, 2, 0]
    assert third == 0  # the second one is gone
    child.communicate("\n")
    assert run(c, "start()\nprint(json.dumps(used()))") == CONTEXT * MIB


def test_what_is_asked_for_is_not_measured_again(container):
    got = run(container(512 * MIB), """
start()
ok(alloc(20 * MIB)[0])
ok(alloc(1000)[0])
p = c.c_uint64()
ok(cuda.cuMemAllocAsync(c.byref(p), c.c_size_t(20 * MIB), None))
before = used()
code, m = load()
ok(code)
own = c.c_void_p()
ok(cuda.cuCtxCreate_v2(c.byref(own), 0, 0))
ok(cuda.cuCtxDestroy_v2(own))
print(json.dumps([before, used()]))
""")
    assert got == [(CONTEXT + 22 + 32) * MIB] * 2


@pytest.mark.parametrize("kind, unload", [("load", "cuModuleUnload"), ("library", "cuLibraryUnload")])
def test_what_comes_with_code_is_charged(container, kind, unload):
    got = run(container((CONTEXT + 40) * MIB), f"""
start()
p = behind_our_back(30)
before = used()
code, m = {kind}()
after = used()
ok(behind_our_back_free(p))
ok(cuda.{unload}(m))
gone = used()
behind_our_back(42)
refused, m = {kind}()
print(json.dumps([before, code, after, gone, refused, m.value, used(), alloc(1)[0]]))
""")
    c = CONTEXT * MIB
    # What stays on the card although its module was refused is charged, limit or not: nothing more may be had.
    assert got == [c, 0, c + 30 * MIB, c, 2, None, c + 40 * MIB, 2]


def test_managed_memory_elsewhere_hides_nothing(container):
    got = run(container(512 * MIB), """
start()
p = c.c_uint64()
ok(cuda.cuMemAllocManaged(c.byref(p), c.c_size_t(200 * MIB), 1))
code, m = load()
ok(code)
full = used()
ok(free(p.value))
print(json.dumps([full, used()]))
""")
    assert got == [(CONTEXT + 200) * MIB, CONTEXT * MIB]


def test_managed_memory_on_another_card_is_not_taken_for_code(container):
    c = container(512 * MIB)
    got = run(c, """
start(0)
start(1)
second = used()
start(0)
p = c.c_uint64()
ok(cuda.cuMemAllocManaged(c.byref(p), c.c_size_t(40 * MIB), 1))
first = used()
start(1)
ok(cuda.cuMemPrefetchAsync(p, c.c_size_t(40 * MIB), 1, None))
ok(cuda.cuCtxSynchronize())
code, m = load()
ok(code)
print(json.dumps([first, second, used()]))
""")
    assert got == [(CONTEXT + 40) * MIB, CONTEXT * MIB, CONTEXT * MIB]


@pytest.mark.parametrize("others", [0, 1])
def test_in_a_pid_namespace_our_line_is_found(container, others):
    c = container(512 * MIB)
    held = container(512 * MIB)
    children = [held.start([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(50 * MIB)[0])\nprint(flush=True)\ninput()"])
                for _ in range(others)]
    for child in children:
        child.stdout.readline()
    command = c.command([sys.executable, "-c", "from driver import *\nstart()\nok(alloc(20 * MIB)[0])\nprint(os.getpid(), used())"])
    done = subprocess.run(["unshare", "-pf" if os.geteuid() == 0 else "-rpf", "--mount-proc", *command], capture_output=True,
                          text=True, check=False, timeout=60)
    for child in children:
        child.communicate("\n")
    assert done.returncode == 0, done.stderr
    pid, got = map(int, done.stdout.split())
    assert pid < 100 and got == (CONTEXT + 20) * MIB


def test_without_nvml_contexts_are_free(container, short_tmp):
    (short_tmp / "lib").mkdir()
    os.symlink(BUILD / "sim/libcuda.so.1", short_tmp / "lib/libcuda.so.1")
    got = run(container(64 * MIB), "start()\nprint(json.dumps([alloc(64 * MIB)[0], used(), load()[0]]))",
              env={"LD_LIBRARY_PATH": str(short_tmp / "lib")})
    assert got == [0, 64 * MIB, 0]


def test_measured_while_others_allocate(container):
    c = container(1024 * MIB)
    got = run(c, """
import threading
ctx = start()
stop = False
def work():
    ok(cuda.cuCtxSetCurrent(ctx))
    while not stop:
        code, p = alloc(6 * MIB)
        ok(code)
        ok(free(p))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
for _ in range(100):
    code, m = load()
    ok(code)
    ok(cuda.cuModuleUnload(m))
stop = True
[t.join() for t in threads]
code, m = load()
print(json.dumps(used()))
""")
    assert got == CONTEXT * MIB


def test_the_end_of_a_process_returns_its_context(container):
    c = container(256 * MIB)
    run(c, "start()\nprint(json.dumps(used()))")
    assert run(c, "start()\nprint(json.dumps(used()))") == CONTEXT * MIB
