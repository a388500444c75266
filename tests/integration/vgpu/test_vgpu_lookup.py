"""Every way to a driver's function leads to ours where we hook it, and nowhere else."""
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
FAKES = BUILD / "tests/fake"
VGPU = BUILD / "lib/libvgpu.so"

ROWS = [(s, b, int(v), f == "per-thread") for s, b, v, f in
        (line.split("|") for line in (REPO / "src/abi/cuda_symbols.txt").read_text().splitlines())]
HOOKS = [line.split("#")[0].split() for line in (REPO / "src/vgpu/hooks.def").read_text().splitlines()]
HOOKED = {words[2] for words in HOOKS if len(words) == 3 and words[1] == "now"}
REQUESTS = [line for line in (REPO / "tests/harness/cudart13_requests.txt").read_text().splitlines()
            if not line.startswith("#")]


def resolve(base, version, flags, rows=ROWS):
    """The exported symbol that a request means, by the rule of the interface."""
    variants = [r for r in rows if r[1] == base]
    per_thread = bool(flags & 2) and any(r[3] for r in variants)
    fit = [r for r in variants if r[3] == per_thread and r[2] <= version]
    return max(fit, key=lambda r: r[2])[0] if fit else None


# Walks the requests on stdin ("base version flags"), answers "code status library symbol" for each.
WALK = """
from driver import *
ours, real = addresses(VGPU), addresses(sys.argv[1])
name_of = {address: "driver " + name for name, address in real.items()}
name_of.update({address: "ours " + name for name, address in ours.items()})
get = c.CFUNCTYPE(c.c_int, c.c_char_p, c.POINTER(c.c_void_p), c.c_int, c.c_uint64, c.POINTER(c.c_int))(
    address_of(cuda.cuGetProcAddress_v2) if hasattr(cuda, "cuGetProcAddress_v2") else 0)
for line in sys.stdin:
    base, version, flags = line.rstrip("\\n").split(",")
    out, status = c.c_void_p(), c.c_int(77)
    code = get(base.encode(), c.byref(out), int(version), int(flags), c.byref(status))
    print(code, status.value, name_of.get(out.value, f"unknown {out.value}"))
"""


def walk(kind, requests):
    driver = FAKES / kind / "libcuda.so.1" if kind != "sim" else BUILD / "sim/libcuda.so.1"
    if not driver.exists():
        pytest.skip(f"not built: {driver}")
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(driver.parent), "LD_PRELOAD": str(VGPU),
           "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1", "HAMI_BUILD": str(BUILD)}
    done = subprocess.run([sys.executable, "-c", WALK, str(driver)], input="\n".join(requests) + "\n", env=env,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def expected(symbol):
    return "0 2 unknown None" if symbol is None else f"0 0 {'ours' if symbol in HOOKED else 'driver'} {symbol}"


@pytest.mark.parametrize("kind", ["full", "sim"])
def test_every_request_is_answered_with_its_own_variant(kind):
    requests = [(base, version, flags) for _, base, version, _ in ROWS for flags in (0, 1, 2)]
    answers = walk(kind, [f"{b},{v},{f}" for b, v, f in requests])
    wrong = []
    for (base, version, flags), answer in zip(requests, answers):
        symbol = resolve(base, version, flags)
        if answer.replace("500 2 unknown", "0 2 unknown") != expected(symbol):
            wrong.append((base, version, flags, answer, symbol))
    assert len(answers) == 3 * 637 and not wrong, wrong[:10]


@pytest.mark.parametrize("kind", ["full", "sim"])
def test_what_cudart_asks_for(kind):
    requests = [line.split("|")[0] for line in REQUESTS]
    answers = walk(kind, requests)
    assert len(answers) >= 440
    for line, answer in zip(requests, answers):
        base, version, flags = line.split(",")
        symbol = resolve(base, int(version), int(flags))
        if symbol is not None:
            assert answer == expected(symbol), line
        elif base == "":
            assert answer.startswith("0 ") and answer.endswith("unknown None"), answer
        else:
            assert re.match(r"(0|500) [12] unknown None", answer), (line, answer)


def test_a_driver_that_answers_with_inner_functions():
    requests = [("cuMemAlloc", 3020, 0), ("cuMemAllocAsync", 11020, 2), ("cuCtxGetDevice", 13000, 0), ("cuMemAlloc", 2000, 0)]
    answers = walk("inner", [f"{b},{v},{f}" for b, v, f in requests])
    assert answers[0] == "0 0 ours cuMemAlloc_v2"
    assert answers[1] == "0 0 ours cuMemAllocAsync_ptsz"
    assert answers[2].startswith("0 0 unknown")
    assert answers[3] == "0 0 ours cuMemAlloc"


def test_an_entry_newer_than_our_table_passes():
    answers = walk("newer", ["cuMemAlloc,13000,0", "cuMemAlloc,14000,0", "cuMemTeleport,14000,0", "cuMemFree,14000,0"])
    assert answers == ["0 0 ours cuMemAlloc_v2", "0 0 driver cuMemAlloc_v3", "0 0 driver cuMemTeleport",
                       "0 0 ours cuMemFree_v2"]


def test_newer_entries_are_counted(container, node):
    c = container(1 << 26)
    c.python("""
        get = cuda.cuGetProcAddress_v2
        out = c.c_void_p()
        for name, version in ((b"cuMemAlloc", 14000), (b"cuMemTeleport", 14000), (b"cuMemFree", 13000)):
            ok(get(name, c.byref(out), version, c.c_uint64(0), None))
    """, env={"LD_LIBRARY_PATH": str(FAKES / "newer")})
    assert c.snapshot()["unknown_entry_points"] == 2


def test_an_old_driver_is_offered_nothing_it_lacks():
    code = """
from driver import *
print([hasattr(cuda, name) for name in ("cuMemAlloc_v2", "cuGetProcAddress_v2", "cuMemRetainAllocationHandle", "cuMemAllocAsync", "cuDevicePrimaryCtxReset_v2")])
print(base_of(VGPU) <= address_of(cuda.cuMemAlloc_v2))
"""
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(FAKES / "old"), "LD_PRELOAD": str(VGPU), "PYTHONPATH": str(HERE),
           "HAMI_BUILD": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "[True, False, True, True, True]", done.stderr


def probe(preload, extra=None):
    env = {"LD_LIBRARY_PATH": f"{FAKES}/full:{FAKES}/helpers", "LD_PRELOAD": preload, **(extra or {})}
    done = subprocess.run([BUILD / "tests/lookup-probe"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_every_way_reaches_the_hook():
    got = probe(str(VGPU))
    ours = {"linked", "handle", "default", "next", "self", "dlvsym", "dlsym-by-dlvsym", "dlsym-by-dlvsym-234", "dlsym-by-next",
            "plain-linked", "plain-dlsym", "deepbind-linked", "deepbind-dlsym", "dlopen-by-next", "dlopen-by-handle"}
    assert {way for way, library in got.items() if library == "libvgpu.so"} == ours
    assert got["passed"] == "libcuda.so.1"
    assert got["absent"] == "none"
    assert got["own"] == "libown_cuda.so"  # somebody else's function of that name stays theirs
    assert got["no-handle-error"] == "set"


def test_a_wrapper_behind_us_reaches_the_hook():
    got = probe(f"{VGPU} {FAKES}/helpers/libwraps_cuda.so")
    assert got["next-of-wrapper"] == "libvgpu.so"
    assert probe(f"{FAKES}/helpers/libwraps_cuda.so")["next-of-wrapper"] == "libcuda.so.1"


def test_nothing_is_offered_without_a_driver():
    code = "import ctypes\nprint(hasattr(ctypes.CDLL(None), 'cuMemAlloc_v2'), hasattr(ctypes.CDLL(None), 'nvmlDeviceGetMemoryInfo'))"
    done = subprocess.run([sys.executable, "-c", code], env={"LD_PRELOAD": str(VGPU)}, capture_output=True, text=True,
                          check=False)
    assert done.stdout == "False False\n", done.stderr


def test_nothing_changes_without_the_preload():
    got = probe("")
    assert "libvgpu.so" not in got.values()
    assert got["handle"] == "libcuda.so.1"


@pytest.mark.parametrize("order", ["vgpu first", "vgpu last"])
def test_another_preload_library_keeps_its_rtld_next(order):
    libraries = [str(VGPU), str(FAKES / "helpers/libwraps_getpid.so")]
    if order == "vgpu last":
        libraries.reverse()
    code = "import os\nprint([os.getpid() > 0 for _ in range(3)])"
    done = subprocess.run([sys.executable, "-c", code], env={"LD_PRELOAD": " ".join(libraries)}, capture_output=True,
                          text=True, check=False)
    assert done.stdout == "[True, True, True]\n", done.stderr


def test_a_program_without_cuda_is_left_alone(short_tmp):
    code = """
import ctypes, os, sys
ctypes.CDLL(None).dlsym  # a lookup, the only thing we could notice
me = "/proc/self/"
maps = [line.split()[5] for line in open(me + "maps") if len(line.split()) > 5 and line.split()[5].startswith("/")]
print(sorted(os.listdir(me + "fd")))
print(len(os.listdir(me + "task")))
print(sorted(set(m for m in maps if "vgpu" not in m)))
"""
    def run(preload):
        env = {"LD_PRELOAD": preload, "CUDA_DEVICE_MEMORY_LIMIT": "1g", "HAMI_VGPU_LOG": "1",
               "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
    assert run(str(VGPU)) == run("")
    assert not list(short_tmp.iterdir())


def test_start_cost_of_a_program_without_cuda():
    """Shown here, measured by make bench; asserted loosely, this machine is shared."""
    def best(preload):
        times = []
        for _ in range(30):
            start = time.perf_counter()
            subprocess.run(["/bin/true"], env={"LD_PRELOAD": preload}, check=True)
            times.append(time.perf_counter() - start)
        return min(times)
    more = best(str(VGPU)) - best("")
    print(f"start cost: {more * 1e6:.0f} us")
    assert more < 0.001
