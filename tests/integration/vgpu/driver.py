"""The CUDA driver and NVML by ctypes, in the process that imports this: the children of the libvgpu tests."""
import ctypes as c
import os
import pathlib
import subprocess
import sys  # noqa: F401  (the children use it)

MIB = 1 << 20
OUT_OF_MEMORY = 2
BUILD = pathlib.Path(os.environ["HAMI_BUILD"])
VGPU = BUILD / "lib/libvgpu.so"

cuda = c.CDLL("libcuda.so.1")


def ok(code):
    assert code == 0, f"CUDA answered {code}"


def start(device=0):
    """cuInit and the device's primary context, made current."""
    ok(cuda.cuInit(0))
    ctx = c.c_void_p()
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(ctx), device))
    ok(cuda.cuCtxSetCurrent(ctx))
    return ctx


def alloc(size, call=None):
    """(code, pointer)"""
    ptr = c.c_uint64()
    code = (call or cuda.cuMemAlloc_v2)(c.byref(ptr), c.c_size_t(size))
    return code, ptr.value


def free(ptr):
    return cuda.cuMemFree_v2(c.c_uint64(ptr))


def info():
    """(free, total)"""
    f, t = c.c_size_t(), c.c_size_t()
    ok(cuda.cuMemGetInfo_v2(c.byref(f), c.byref(t)))
    return f.value, t.value


def used():
    f, t = info()
    return t - f


def symbols(library):
    """{name: value} of what a library defines for others, as nm says."""
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True,
                           env={"PATH": "/usr/bin:/bin"}).stdout.splitlines()
    return {name.split("@")[0]: int(value, 16) for value, _, name in (line.split() for line in lines if len(line.split()) == 3)}


def base_of(library):
    """Where a library is mapped in this process."""
    name = os.path.realpath(library)
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        words = line.split()
        if len(words) >= 6 and words[5] == name:
            return int(words[0].split("-")[0], 16) - int(words[2], 16)
    raise LookupError(f"{name} is not mapped")


def addresses(library):
    base = base_of(library)
    return {name: base + value for name, value in symbols(library).items()}


def address_of(function):
    return c.cast(function, c.c_void_p).value


def stop():
    """Waits until the test has looked (steps.py)."""
    print("stop", flush=True)
    input()
