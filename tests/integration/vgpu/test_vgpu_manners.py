"""A guest in somebody's process: with nothing left to work with it refuses memory, works again when there is some, and
says nothing that was not asked for."""
import json
import os
import sys

import pytest

from conftest import limit_file

MIB = 1 << 20
LIMIT = 64

# The driver is up before anything is scarce, by a way around us; then we are to attach. Prints what then can be had of the
# limit of 64 MiB, and what once there is enough of everything again.
SCARCE = """
from driver import *
import json, resource
which = getattr(resource, sys.argv[1])
bare = addresses(BUILD / "sim/libcuda.so.1")
ctx = c.c_void_p()
ok(c.CFUNCTYPE(c.c_int, c.c_uint)(bare["cuInit"])(0))
ok(c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int)(bare["cuDevicePrimaryCtxRetain"])(c.addressof(ctx), 0))
ok(c.CFUNCTYPE(c.c_int, c.c_void_p)(bare["cuCtxSetCurrent"])(ctx))
code, first = alloc(MIB, lambda p, n: c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_size_t)(bare["cuMemAlloc_v2"])(c.cast(p, c.c_void_p), n))
ok(code)  # reserves the driver's address space
ok(c.CFUNCTYPE(c.c_int, c.c_uint64)(bare["cuMemFree_v2"])(first))
before = resource.getrlimit(which)
size = int(sys.argv[2])
if which == resource.RLIMIT_AS:
    size += int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * 4096
resource.setrlimit(which, (size, before[1]))
def tries():
    return [alloc(80 * MIB)[0], alloc(40 * MIB)[0], alloc(20 * MIB)[0]]
scarce = tries()
resource.setrlimit(which, before)
print(json.dumps([scarce, tries()]))
"""


def run(c, code, *args, env=None):
    child = c.start([sys.executable, "-c", code, *map(str, args)], env=env)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, ""), (args, child.returncode, out, err)
    return json.loads(out)


@pytest.mark.parametrize("which, sizes", [("RLIMIT_NOFILE", range(9)), ("RLIMIT_AS", [n << 12 for n in (0, 40, 200, 500, 1000, *(1 << i for i in range(11, 21)))])])
def test_attached_with_too_little_left(container, which, sizes):
    """Of descriptors or address space, from none at all to enough, so that each step of ours fails once."""
    seen = set()
    for size in sizes:
        scarce, then = run(container(LIMIT * MIB), SCARCE, which, size)
        got = sum(size for size, code in zip((80, 40, 20) * 2, scarce + then) if code == 0)
        assert got == 60, "never more than the limit, and in the end as much as fits"
        seen.add(tuple(scarce))
    assert {(2, 2, 2), (2, 0, 0)} <= seen


# Threads ask all the time, while none can attach and while one at last does.
SCARCE_FOR_THREADS = SCARCE[:SCARCE.index("def tries")] + """
import threading, time
ends = []
def ask():
    ok(cuda.cuCtxSetCurrent(ctx))
    while not ends:
        code, p = alloc(MIB)
        assert code in (0, 2) and (code != 0 or free(p) == 0)
threads = [threading.Thread(target=ask) for _ in range(8)]
for t in threads:
    t.start()
time.sleep(0.2)
resource.setrlimit(which, before)
time.sleep(0.1)
ends.append(True)
for t in threads:
    t.join()
print(json.dumps(alloc(60 * MIB)[0]))
"""


def test_threads_that_attach_with_too_little_left(container):
    assert run(container(LIMIT * MIB), SCARCE_FOR_THREADS, "RLIMIT_NOFILE", 3) == 0


def test_descriptors_used_up_later(container):
    got = run(container(LIMIT * MIB), """
from driver import *
import json, resource
start()
ok(alloc(40 * MIB)[0])
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
codes = [alloc(30 * MIB)[0], used() // MIB]
code, p = alloc(20 * MIB)
codes += [code, used() // MIB, free(p), used() // MIB]
resource.setrlimit(resource.RLIMIT_NOFILE, before)
print(json.dumps(codes + [alloc(24 * MIB)[0]]))
""")
    assert got == [2, 40, 0, 60, 0, 40, 0]


def test_any_user_in_a_read_only_root(container, needs_root):
    """No folder to write to but the mounted region; the simulated driver's own folder stays as it is."""
    c = container(LIMIT * MIB)
    for folder in (c.folder.parent, c.node.folder):
        folder.chmod(0o755)
    code = """
import os
from driver import *  # while the build folder can be read
os.setgroups([])
os.setgid(65533)
os.setuid(65533)
writable = [d for d in ("/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/hami-vgpu", os.getcwd()) if os.access(d, os.W_OK)]
start()
print(writable, alloc(60 * MIB)[0], alloc(6 * MIB)[0], used() // MIB)
"""
    sim = c.node.env["HAMI_SIM_DIR"]
    script = (f"mount --bind {sim} {sim} && mount -o remount,ro,bind / && for d in /tmp /var/tmp /dev/shm /run; do "
              'mount -o remount,ro,bind $d 2>/dev/null || { mount --bind $d $d && mount -o remount,ro,bind $d; } || exit 32; done; exec "$@"')
    child = c.start(["sh", "-c", script, "sh", sys.executable, "-c", code])
    out, err = child.communicate(timeout=60)
    if child.returncode == 32:
        pytest.skip(f"cannot make the root read-only: {err}")
    assert (child.returncode, out, err) == (0, "[] 0 2 60\n", "")


def test_what_it_says_is_capped(container, node):
    """Sixteen troubles at each attachment, in a process, its child and its grandchild: 20 lines are enough."""
    c = container(LIMIT * MIB, limits=limit_file([f"GPU-missing-{i}" for i in range(16)], 1000, 5))
    code = """
from driver import *
cuda.cuInit(0)
for _ in range(2):
    child = os.fork()
    if child:
        os._exit(os.waitpid(child, 0)[1])
    total = c.c_size_t()
    cuda.cuDeviceTotalMem_v2(c.byref(total), 0)
    alloc(1)
"""
    child = c.start([sys.executable, "-c", code], env={"HAMI_VGPU_LOG": "1"})
    _, err = child.communicate(timeout=60)
    lines = err.splitlines()
    assert child.returncode == 0 and len(lines) == 20 and all(line.startswith("libvgpu[") for line in lines), err
    assert c.snapshot()["troubles"] == 3 * 16
    child = c.start([sys.executable, "-c", code])
    assert child.communicate(timeout=60)[1] == ""
