"""Green contexts, the limits of contexts and code that comes at its first use: measured, charged, refused."""
import sys

import pytest

from conftest import nodes

MIB = 1 << 20
CONTEXT, GREEN = 104, 8

PRELUDE = r"""
import time
def green(device=0):
    "(code, green context)"
    resource, desc, g = c.create_string_buffer(256), c.c_void_p(), c.c_void_p()
    ok(cuda.cuDeviceGetDevResource(device, resource, 1))
    ok(cuda.cuDevResourceGenerateDesc(c.byref(desc), resource, 1))
    return cuda.cuGreenCtxCreate(c.byref(g), desc, device, 1), g
def enter(g):
    ctx = c.c_void_p()
    ok(cuda.cuCtxFromGreenCtx(c.byref(ctx), g))
    ok(cuda.cuCtxSetCurrent(ctx))
    return ctx
def ptx(mib=0):
    variable = f".visible .global .align 8 .b8 table[{mib * MIB}];\n" if mib else ""
    return (".version 6.0\n.target sm_50\n.address_size 64\n" + variable +
            ".visible .entry busy_ns(.param .u64 p) { ret; }\n").encode() + b"\0"
def load_library(mib):
    lib = c.c_void_p()
    ok(cuda.cuLibraryLoadData(c.byref(lib), ptx(mib), None, None, 0, None, None, 0))
    return lib
def kernel_of(lib):
    k = c.c_void_p()
    ok(cuda.cuLibraryGetKernel(c.byref(k), lib, b"busy_ns"))
    return k
def launch(k):
    ns = c.c_uint64(1000)
    args = (c.c_void_p * 1)(c.cast(c.byref(ns), c.c_void_p))
    code = cuda.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, None, args, None)
    ok(cuda.cuCtxSynchronize())
    return code
def eventually(want, what=used):
    "What is shown once the measurements' pause is over."
    end = time.monotonic() + 8
    while what() != want and time.monotonic() < end:
        time.sleep(0.01)
    return what()
"""


@pytest.fixture(scope="module")
def node():
    yield from nodes(context_mib=CONTEXT)


def run(c, code, **kwargs):
    return c.python(PRELUDE + code, **kwargs)


def bytes_of(node, pid, card=0):
    return sum(p["bytes"] for p in node.status()["cards"][card]["processes"] if p["pid"] == pid)


def test_a_green_context_is_charged_and_given_back(container, node):
    c = container(512 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + PRELUDE + """
start()
codes, greens = zip(*[green() for _ in range(3)])
print(os.getpid(), codes == (0, 0, 0), used(), flush=True)
input()
for g in greens:
    ok(cuda.cuGreenCtxDestroy(g))
print(used(), flush=True)
input()
"""])
    pid, good, used = child.stdout.readline().split()
    assert good == "True" and int(used) == (CONTEXT + 3 * GREEN) * MIB == bytes_of(node, int(pid))
    assert c.snapshot()["cards"][0]["used"] == int(used)
    child.stdin.write("\n")
    child.stdin.flush()
    assert int(child.stdout.readline()) == CONTEXT * MIB == bytes_of(node, int(pid))
    child.communicate("\n")


@pytest.mark.parametrize("primary", [False, True])
def test_a_green_context_that_does_not_fit_is_refused_and_gone(container, node, primary):
    c = container((CONTEXT + 2) * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + PRELUDE + f"""
start() if {primary} else ok(cuda.cuInit(0))
answers = [green() for _ in range(3)]
print(os.getpid(), [(code, g.value) for code, g in answers] == [(OUT_OF_MEMORY, None)] * 3, flush=True)
input()
"""])
    pid, refused = child.stdout.readline().split()
    assert refused == "True"
    assert c.snapshot()["cards"][0]["used"] == bytes_of(node, int(pid)) == (CONTEXT * MIB if primary else 0)
    assert c.snapshot()["cards"][0]["refused"] == 3
    child.communicate("\n")


def test_what_is_allocated_in_a_green_context_is_the_primary_s(container):
    """It outlives the green context, and goes with the primary one."""
    got = run(container(512 * MIB), """
primary = start()
code, g = green()
enter(g)
ok(alloc(20 * MIB)[0])
ok(alloc(1000)[0])
p = alloc(6 * MIB)[1]
inside = used()
ok(cuda.cuCtxSetCurrent(primary))
ok(cuda.cuGreenCtxDestroy(g))
after = used()
ok(free(p))
freed = used()
ok(cuda.cuDevicePrimaryCtxReset_v2(0))
start()
print(json.dumps([inside, after, freed, used()]))
""")
    c, all_of_it = CONTEXT * MIB, 28 * MIB
    assert got == [c + GREEN * MIB + all_of_it, c + all_of_it, c + all_of_it - 6 * MIB, c]


def test_the_last_green_context_ends_the_primary_one(container, node):
    """Nobody but the green context retained it: what it held goes with it."""
    c = container(512 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + PRELUDE + """
ok(cuda.cuInit(0))
code, g = green()
ok(code)
enter(g)
ok(alloc(20 * MIB)[0])
print(os.getpid(), used(), flush=True)
input()
ok(cuda.cuGreenCtxDestroy(g))
print(flush=True)
input()
"""])
    pid, used = map(int, child.stdout.readline().split())
    assert used == (CONTEXT + GREEN + 20) * MIB == bytes_of(node, pid)
    child.stdin.write("\n")
    child.stdin.flush()
    child.stdout.readline()
    assert c.snapshot()["cards"][0]["used"] == bytes_of(node, pid) == 0
    child.communicate("\n")


def test_a_green_context_s_work_is_within_the_limit(container):
    """Views and refusals with it current; each card by itself."""
    got = run(container((CONTEXT + GREEN + 64) * MIB), """
answers = []
for device in (1, 0):
    start(device)
    code, g = green(device)
    ok(code)
    enter(g)
    ok(alloc(60 * MIB)[0])
    answers.append([info(), alloc(6 * MIB)[0], alloc(4 * MIB)[0]])
print(json.dumps(answers))
""")
    assert got == [[[4 * MIB, (CONTEXT + GREEN + 64) * MIB], 2, 0]] * 2


@pytest.mark.parametrize("limit, value, mib", [(2, 40 << 20, 32), (1, 9 << 20, 8), (0, 2048, None)])
def test_limits_of_a_context_are_charged_and_set_back(container, node, limit, value, mib):
    c = container(1024 * MIB)
    child = c.start([sys.executable, "-c", "from driver import *\n" + PRELUDE + f"""
start()
limit = {limit}
def get():
    v = c.c_size_t()
    ok(cuda.cuCtxGetLimit(c.byref(v), limit))
    return v.value
default = get()
ok(cuda.cuCtxSetLimit(limit, c.c_size_t({value})))
print(os.getpid(), used(), flush=True)
input()
ok(cuda.cuCtxSetLimit(limit, c.c_size_t(default)))
print(used(), flush=True)
input()
ok(alloc({1024 - CONTEXT} * MIB - 2 * MIB)[0])
refused = cuda.cuCtxSetLimit(limit, c.c_size_t({value}))
print(refused, get() == default, used(), flush=True)
input()
"""])

    def answer():
        child.stdin.write("\n")
        child.stdin.flush()
        return child.stdout.readline().split()
    pid, used = map(int, child.stdout.readline().split())
    assert used == bytes_of(node, pid) > CONTEXT * MIB
    assert mib is None or used == (CONTEXT + mib) * MIB
    assert answer() == [str(CONTEXT * MIB)]
    assert answer() == ["2", "True", str(1022 * MIB)] and bytes_of(node, pid) == 1022 * MIB
    child.communicate("\n")


FIRST_USES = {
    "launch": "ok(launch(kernel_of(lib)))",
    "enumerate": "k = c.c_void_p()\nok(cuda.cuLibraryEnumerateKernels(c.byref(k), 1, lib))\nok(launch(k))",
    "module": "m, f = c.c_void_p(), c.c_void_p()\nok(cuda.cuLibraryGetModule(c.byref(m), lib))\n"
              "ok(cuda.cuModuleGetFunction(c.byref(f), m, b'busy_ns'))\nok(launch(f))",
    "function": "f = c.c_void_p()\nok(cuda.cuKernelGetFunction(c.byref(f), kernel_of(lib)))",
    "variable": "p = c.c_uint64()\nok(cuda.cuLibraryGetGlobal(c.byref(p), None, lib, b'table'))",
    "variable of a module": "m, p = c.c_void_p(), c.c_uint64()\nok(cuda.cuLibraryGetModule(c.byref(m), lib))\n"
                            "ok(cuda.cuModuleGetGlobal_v2(c.byref(p), None, m, b'table'))",
    "cuFuncLoad": "ok(cuda.cuFuncLoad(kernel_of(lib)))",
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_code_that_comes_at_its_first_use_is_charged_then(container, use):
    got = run(container(512 * MIB), f"""
start()
lib = load_library(30)
before = used()
{FIRST_USES[use]}
after = eventually({(CONTEXT + 30) * MIB})
ok(cuda.cuLibraryUnload(lib))
print(json.dumps([before, after, used()]))
""")
    assert got == [CONTEXT * MIB, (CONTEXT + 30) * MIB, CONTEXT * MIB]


def test_an_allocation_finds_it_too(container):
    """Nobody asks how much is used: the next allocation after the pause does not fit any more."""
    got = run(container((CONTEXT + 40) * MIB), """
start()
k = kernel_of(load_library(30))
fits = alloc(20 * MIB)
ok(fits[0])
ok(free(fits[1]))
ok(launch(k))
def refused():
    code, p = alloc(20 * MIB)
    if code == 0:
        ok(free(p))
    return code
print(json.dumps([eventually(OUT_OF_MEMORY, refused), used()]))
""")
    assert got == [2, (CONTEXT + 30) * MIB]


def test_loading_beyond_the_limit_is_told_and_charged(container):
    got = run(container((CONTEXT + 20) * MIB), """
start()
k = kernel_of(load_library(30))
first = cuda.cuFuncLoad(k)
print(json.dumps([first, used(), alloc(1)[0], cuda.cuFuncLoad(k)]))
""")
    assert got == [2, (CONTEXT + 20) * MIB, 2, 0]  # used is shown within the slice


def test_measuring_takes_little_time(container):
    """After a measurement of a second there is none for 49: what comes meanwhile is not seen, by asking or allocating."""
    got = run(container(512 * MIB), """
start()
k = kernel_of(load_library(30))
subprocess.run([BUILD / "bin/hami-simctl", "gpu", "0", "nvml-hang", "1"], check=True, env={**os.environ, "LD_PRELOAD": ""})
ok(alloc(2 * MIB)[0])
ok(launch(k))
ok(alloc(2 * MIB)[0])
seen = used()
ok(cuda.cuFuncLoad(k))
print(json.dumps([seen, used()]))
""")
    assert got == [(CONTEXT + 4) * MIB, (CONTEXT + 34) * MIB]


def test_a_fat_binary_is_measured(container):
    got = run(container((CONTEXT + 40) * MIB), """
start()
def load(mib):
    m = c.c_void_p()
    return cuda.cuModuleLoadFatBinary(c.byref(m), ptx(mib)), m
code, m = load(30)
held = used()
refused, none = load(20)
ok(cuda.cuModuleUnload(m))
print(json.dumps([code, held, refused, none.value, used()]))
""")
    assert got == [0, (CONTEXT + 30) * MIB, 2, None, CONTEXT * MIB]


def test_attached_contexts_end_with_their_last_use(container):
    got = run(container(512 * MIB), """
start()
ctx, same = c.c_void_p(), c.c_void_p()
ok(cuda.cuCtxCreate_v2(c.byref(ctx), 0, 0))
ok(cuda.cuCtxAttach(c.byref(same), 0))
ok(alloc(20 * MIB)[0])
two = used()
ok(cuda.cuCtxDetach(ctx))
still = used()
ok(cuda.cuCtxDetach(ctx))
print(json.dumps([two, still, used()]))
""")
    c = CONTEXT * MIB
    assert got == [2 * c + 20 * MIB, 2 * c + 20 * MIB, c]
