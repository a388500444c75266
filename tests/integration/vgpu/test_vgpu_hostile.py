"""The region is hostile ground: what a container does to its file, before a process maps it and under one that has, gives
nobody more memory than the limit, crashes nothing but (SIGBUS, where the file was cut) its own processes, and shows."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import BUILD

MIB = 1 << 20
LIMIT, HELD = 64, 40

HOLDS = f"""
from driver import *
start()
ok(alloc({HELD} * MIB)[0])
print("holds", flush=True)
input()
got = 0
for _ in range(3):
    for size in (20, 4, 1):
        while alloc(size * MIB)[0] == 0:
            got += size
            print("got", got, flush=True)
            assert got < 1000
print("query", info()[0] // MIB, flush=True)
input()
"""

# What a container can do to the file under a process that holds 40 of 64 MiB.


def truncate_to(size):
    return lambda path, _: os.truncate(path, size if size >= 0 else path.stat().st_size + size)


def noise(path, _):
    path.write_bytes(os.urandom(path.stat().st_size))


def noise_behind_the_header(path, _):
    with open(path, "r+b") as f:
        f.seek(64)
        f.write(os.urandom(path.stat().st_size - 64))


def another_version(path, _):
    with open(path, "r+b") as f:
        f.seek(8)
        f.write(b"\x09")


def replace(path, fresh):
    shutil.copy(fresh, path.with_name("new"))
    os.rename(path.with_name("new"), path)


def cut_and_grown(path, _):
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def overwrite_with_a_fresh_one(path, fresh):
    path.write_bytes(fresh.read_bytes())


def forge(path, _):
    """The counter alone: nothing is in use."""
    with open(path, "r+b") as f:
        f.seek(2112)
        f.write(bytes(8))


HARMS = {
    "cut to nothing": truncate_to(0), "cut by a page": truncate_to(-4096), "cut by a byte": truncate_to(-1),
    "enlarged": truncate_to(4 << 20), "cut and grown": cut_and_grown, "deleted": lambda path, _: os.unlink(path),
    "replaced": replace, "overwritten": overwrite_with_a_fresh_one, "noise": noise,
    "noise behind the header": noise_behind_the_header, "another version": another_version, "forged": forge,
    "unreadable": lambda path, _: path.chmod(0),
}
# SIGBUS is what the kernel does to who touches what was cut off; libvgpu touches no signal handlers. At a query or
# refusal the file is looked at first; what is touched before lies in the first pages.
MAY_END = {"cut to nothing"}
# The counters are as they were: the limit holds on, to the byte.
HOLDS_ON = {"unreadable", "another version"}


def reads(c):
    """What reads regions from outside lives through all of this: hami-smi's and the agent's code."""
    for what in ("show", "reap"):
        done = subprocess.run([BUILD / "tests/region-tool", what, c.region], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), (what, done.returncode)
        assert done.returncode == 0 or done.stderr.startswith("region-tool: "), done.stderr


@pytest.mark.parametrize("harm", HARMS)
def test_under_a_process_that_has_it_mapped(container, short_tmp, harm):
    c, neighbour, fresh = container(LIMIT * MIB), container(LIMIT * MIB), short_tmp / "fresh"
    shutil.copy(c.region, fresh)
    child = c.start([sys.executable, "-c", HOLDS], env={"HAMI_VGPU_LOG": "1"})
    assert child.stdout.readline() == "holds\n"
    HARMS[harm](c.region, fresh)
    child.stdin.write("\n")
    child.stdin.flush()
    lines = []
    for line in child.stdout:
        lines.append(line.split())
        if line.startswith("query"):
            break
    reads(c)
    out, err = child.communicate("\n", timeout=30)
    got = max([int(n) for what, n in lines if what == "got"], default=0)
    print(harm, got, child.returncode, lines[-1:], err)
    assert HELD + got <= LIMIT
    if child.returncode != 0:
        assert harm in MAY_END and child.returncode in (-signal.SIGBUS, 128 + signal.SIGBUS), (out, err)
    elif harm not in HOLDS_ON:
        assert "no more allocations" in err, "the trouble is told where it cannot be kept"
        assert lines[-1] == ["query", "0"]
    assert neighbour.python("start()\nprint(json.dumps([alloc(64 * MIB)[0], used()]))") == [0, LIMIT * MIB]


@pytest.mark.parametrize("harm", [h for h in HARMS if h not in ("overwritten", "replaced", "forged")])
def test_before_a_process_maps_it(container, harm):
    c = container(LIMIT * MIB)
    HARMS[harm](c.region, None)
    child = c.start([sys.executable, "-c", "from driver import *\nimport json\nstart()\nprint(json.dumps([alloc(1)[0], info()[0]]))"],
                    env={"HAMI_VGPU_LOG": "1"})
    out, err = child.communicate(timeout=30)
    if harm == "unreadable" and os.geteuid() == 0:
        assert json.loads(out)[0] == 0
    else:
        assert (child.returncode, out) == (0, "[2, 0]\n"), err
        assert "no allocations" in err or "no more allocations" in err
    reads(c)


def test_on_a_read_only_mount(container):
    c = container(LIMIT * MIB)
    child = c.start(["sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"', "/run/hami-vgpu/usage",
                     sys.executable, "-c", "from driver import *\nstart()\nprint(alloc(1)[0], info()[0])"],
                    env={"HAMI_VGPU_LOG": "1"}, preload=True)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (0, "2 0\n"), err
    assert "Read-only" in err or "read-only" in err


def test_a_full_disk(container, short_tmp):
    """Of the environment's region, which libvgpu makes itself: refused, with no file left. The agent's is made with all its
    blocks, so that a disk that is full later harms nobody."""
    c = container()
    script = 'mount -t tmpfs -o size=64k none "$0" && "$@"; code=$?; ls "$0"; exit $code'
    child = c.start(["sh", "-c", script, short_tmp, sys.executable, "-c", "from driver import *\nstart()\nprint(alloc(1)[0], flush=True)"],
                    env={"HAMI_VGPU_LOG": "1", "CUDA_DEVICE_MEMORY_LIMIT": "64m",
                         "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"})
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (0, "2\n"), (out, err)
    assert "no allocations" in err and "pace" in err


LOOKS = """
from driver import *
import threading
context, ends = start(), []

def look():
    ok(cuda.cuCtxSetCurrent(context))
    while not ends:
        info()

threads = [threading.Thread(target=look) for _ in range(8)]
for t in threads:
    t.start()
print("looks", flush=True)
input()
ends.append(True)
for t in threads:
    t.join()
print(alloc(1)[0], flush=True)
"""


@pytest.mark.parametrize("harm", ["deleted", "enlarged"])
def test_under_threads_that_look_at_it(container, harm):
    """One of them notices while others are in the middle of it."""
    c = container(LIMIT * MIB)
    child = c.start([sys.executable, "-c", LOOKS])
    assert child.stdout.readline() == "looks\n"
    time.sleep(0.1)
    HARMS[harm](c.region, None)
    time.sleep(0.1)
    out, err = child.communicate("\n", timeout=30)
    assert (child.returncode, out) == (0, "2\n"), err
