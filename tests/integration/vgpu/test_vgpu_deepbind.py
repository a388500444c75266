"""Libraries opened with RTLD_DEEPBIND, whose own dependencies come before libvgpu: their references reach the hook too, and
opening means what it meant."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", HERE.parents[2] / "build"))
FAKES = BUILD / "tests/fake"
DEEP, NOW, OUT_OF_MEMORY = 8, 2, 2
WAYS = ("by_call", "by_table", "by_dlsym", "by_next")

# Opens a library deeply; what each of its ways to allocate answers for 1 MiB, and for more than the limit. Lazily bound slots
# are used twice: the linker must not bind them again.
TRY = """
name, flags, before = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if before:
    c.CDLL(name, mode=int(before))
start()
lib = c.CDLL(name, mode=flags)
for function in ("by_call", "by_table", "by_dlsym", "by_next"):
    getattr(lib, function).argtypes = [c.c_size_t]
print(json.dumps([[lib[f](n * MIB) for n in (1, 100, 1, 100)] for f in ("by_call", "by_table", "by_dlsym", "by_next")]))
"""


def attempt(container, name, flags=DEEP | NOW, before="", folders=("helpers",), env=None):
    paths = ":".join([str(BUILD / "sim"), *(str(FAKES / folder) for folder in folders)])
    return container(64 << 20).python(TRY, args=[name, str(flags), before], env={"LD_LIBRARY_PATH": paths, **(env or {})})


HELD = [[0, OUT_OF_MEMORY, 0, OUT_OF_MEMORY]] * 4


@pytest.mark.parametrize("name", ["libdeep_lazy.so", "libdeep_now.so"])
@pytest.mark.parametrize("lazily", [True, False])
def test_every_reference_reaches_the_hook(container, name, lazily):
    """Python's own flags always have RTLD_NOW: the library is opened before, lazily, through the C library."""
    if not lazily:
        assert attempt(container, name) == HELD
        return
    code = TRY.replace("lib = c.CDLL(name, mode=flags)", """
opener = c.CDLL(None).dlopen
opener.restype, opener.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
lib = c.CDLL(name, handle=opener(name.encode(), 8 | 1))""")
    got = container(64 << 20).python(code, args=[name, "0", ""],
                                     env={"LD_LIBRARY_PATH": f"{BUILD}/sim:{FAKES}/helpers"})
    assert got == HELD


def test_a_path_is_opened_deeply_too(container):
    assert attempt(container, str(FAKES / "helpers/libdeep_now.so")) == HELD


def test_a_library_s_own_functions_stay_its_own(container):
    """libdeep_own.so finds a function of that name in another library before the driver's."""
    got = attempt(container, "libdeep_own.so")
    assert got[0] == got[1] == [4711] * 4
    assert got[2] == [0, OUT_OF_MEMORY, 0, OUT_OF_MEMORY]


def test_a_library_that_is_open_already(container):
    assert attempt(container, "libdeep_now.so", before=str(NOW)) == HELD
    assert attempt(container, "libdeep_now.so", before=str(NOW | DEEP)) == HELD


def test_a_bare_name_is_searched_for_where_the_caller_says(container):
    """RPATH of the calling library comes first, without the flag and with it (which then binds as without)."""
    for flags in (NOW, NOW | DEEP):
        got = container(64 << 20).python("""
            start()
            opens = c.CDLL("libopens.so").open_it
            opens.restype, opens.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
            lib = c.CDLL("x", handle=opens(b"libdeep_lazy.so", int(sys.argv[1])))
            lib.by_call.argtypes = [c.c_size_t]
            found = {line.split("/fake/")[1].strip() for line in open("/proc/self/maps") if "libdeep" in line}
            print(json.dumps([lib.by_call(MIB), lib.by_call(100 * MIB), *found]))
        """, args=[str(flags)], env={"LD_LIBRARY_PATH": f"{BUILD}/sim:{FAKES}/helpers"})
        assert got == [0, OUT_OF_MEMORY, "hidden/libdeep_lazy.so"]


def test_what_the_library_s_own_scope_lacks_is_found_as_ever(container):
    """Not linked with the driver: its lazy references are left to the linker, and no error is left behind."""
    got = container(64 << 20).python("""
        start()
        libc = c.CDLL(None)
        libc.dlopen.restype, libc.dlopen.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
        libc.dlerror.restype = c.c_char_p
        handle = libc.dlopen(b"libdeep_unlinked.so", 8 | 1)
        error = libc.dlerror()
        lib = c.CDLL("x", handle=handle)
        lib.by_call.argtypes = [c.c_size_t]
        print(json.dumps([error and error.decode(), lib.by_call(MIB), lib.by_call(100 * MIB)]))
    """, env={"LD_LIBRARY_PATH": f"{BUILD}/sim:{FAKES}/helpers"})
    assert got == [None, 0, OUT_OF_MEMORY]


ERRORS = """
import ctypes as c, sys
libc = c.CDLL(None, use_errno=True)
libc.dlopen.restype, libc.dlopen.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
libc.dlerror.restype = c.c_char_p
def one(name, flags):
    c.set_errno(77)
    handle = libc.dlopen(name, flags)
    return handle is not None, libc.dlerror(), c.get_errno() if handle is not None else None
for flags in (1, 2, 8 | 1, 8 | 2, 8, 0):
    for name in (None, b"", b"libnot_there.so", b"/no/such/libx.so", b"$ORIGIN/libx.so", b"libdeep_lazy.so", b"libdeep_now.so"):
        print(flags, name, one(name, flags))
"""


def test_errors_are_libc_s_own():
    def run(preload):
        env = {"LD_LIBRARY_PATH": f"{FAKES}/full:{FAKES}/helpers", "LD_PRELOAD": preload}
        done = subprocess.run([sys.executable, "-c", ERRORS], env=env, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()
    ours, bare = run(str(BUILD / "lib/libvgpu.so")), run("")
    assert len(ours) == 42
    # errno of a successful open is whatever the linker's search left there
    assert [line.rsplit(",", 1)[0] for line in ours] == [line.rsplit(",", 1)[0] for line in bare]


def test_a_deep_library_without_cuda_is_left_alone():
    code = """
import ctypes, os
before = len(os.listdir("/proc/self/fd"))
z = ctypes.CDLL("libz.so.1", mode=8 | 2)
maps = [line for line in open("/proc/self/maps") if "libz" in line]
print(z.zlibCompileFlags() != 0, len(os.listdir("/proc/self/fd")) - before, len(maps), ["w" in m.split()[1] for m in maps])
"""
    def run(preload):
        return subprocess.run([sys.executable, "-c", code], env={"LD_PRELOAD": preload, "HAMI_VGPU_LOG": "1"},
                              capture_output=True, text=True, check=False)
    ours, bare = run(str(BUILD / "lib/libvgpu.so")), run("")
    assert (ours.stdout, ours.stderr) == (bare.stdout, bare.stderr) and bare.returncode == 0


def test_read_only_slots_stay_read_only(container):
    """What RELRO protects is protected again after the change."""
    code = """
        lib = c.CDLL("libdeep_now.so", mode=int(sys.argv[1]))
        print(json.dumps([line.split()[1] for line in open("/proc/self/maps") if "libdeep_now" in line]))
    """
    got = [container(64 << 20).python(code, args=[str(flags)], env={"LD_LIBRARY_PATH": f"{BUILD}/sim:{FAKES}/helpers"})
           for flags in (NOW, NOW | DEEP)]
    assert got[0] == got[1]


def test_many_threads_open_and_close(container):
    got = container(64 << 20).python("""
        import threading
        ctx = start()
        codes = []
        def work(name):
            ok(cuda.cuCtxSetCurrent(ctx))
            libc = c.CDLL(None)
            libc.dlopen.restype, libc.dlopen.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
            libc.dlclose.argtypes = [c.c_void_p]
            for _ in range(200):
                handle = libc.dlopen(name, 8 | 2)
                lib = c.CDLL("x", handle=handle)
                lib.by_call.argtypes = [c.c_size_t]
                codes.append(lib.by_call(100 * MIB))
                libc.dlclose(handle)
        threads = [threading.Thread(target=work, args=[name]) for name in (b"libdeep_lazy.so", b"libdeep_now.so") * 3]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(json.dumps([len(codes), sorted(set(codes))]))
    """, env={"LD_LIBRARY_PATH": f"{BUILD}/sim:{FAKES}/helpers"})
    assert got == [1200, [OUT_OF_MEMORY]]
