"""Odd ways to make processes and to end them, under libvgpu: nothing is lost, nothing waits, nothing is said."""
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import UNSHARE

MIB = 1 << 20


def trick(c, *words, **kwargs):
    """(exit status, output); a shell between us and the trick makes a signal 128 + its number."""
    child = c.start([c.build / "tests/guest-tricks", *words], **kwargs)
    out, err = child.communicate(timeout=60)
    assert err == "", err
    return child.returncode, out


def test_vfork_and_exec(container):
    """The child is another process with a charge of its own; the parent's stays."""
    assert trick(container(64 * MIB), "vfork") == (0, "20 2 0\n20\n")


def test_exec_in_the_middle_of_threads(container):
    for _ in range(10):
        assert trick(container(64 * MIB), "exec-in-a-thread") == (0, "0 0 0\n")


def test_threads_race_at_first_use(container):
    for _ in range(10):
        c = container(64 * MIB)
        assert trick(c, "first-use") == (0, "64\n")
        assert c.snapshot()["attached"] == 1


def test_a_child_in_a_pid_namespace_of_its_own(container, node):
    """It shares the limit. From inside nobody can tell that it is dead; the agent can, as region-tool does here."""
    c = container(64 * MIB)
    child = c.start([c.build / "tests/guest-tricks", "pid-namespace"])
    line = child.stdout.readline()
    if not line and child.wait() == 77:
        pytest.skip("may not make a pid namespace")
    assert line == "50 2\n"
    assert child.stdout.readline() == "0\n", "what the living hold and what the dead held is within the limit"
    assert child.poll() is None
    subprocess.run([c.build / "tests/region-tool", "reap", c.region], check=True)
    out, err = child.communicate("\n")
    assert (child.returncode, out, err) == (0, "0\n", "")


def test_a_pid_that_is_used_again_is_another_process(container):
    """A dead holder's pid lives again: as a process without CUDA, then as one with."""
    c = container(64 * MIB)
    code = textwrap.dedent("""
        from driver import *
        import json, signal
        HOLDS = "from driver import *\\nstart()\\nok(alloc(60 * MIB)[0])\\nprint(flush=True)\\ninput()"
        def holder():
            child = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            child.stdout.readline()
            return child
        def again(pid, argv):
            for _ in range(100):
                pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
                new = os.fork()
                if new == 0:
                    os.execv(argv[0], argv)
                if new == pid:
                    return
                os.kill(new, 9)
                os.waitpid(new, 0)
            sys.exit(77)
        start()
        first = holder()
        first.kill()
        first.wait()
        again(first.pid, ["/bin/sleep", "60"])
        codes = [alloc(64 * MIB)]
        ok(free(codes[0][1]))
        os.kill(first.pid, 9)
        os.waitpid(first.pid, 0)
        r, w = os.pipe()
        os.set_inheritable(w, True)
        again(first.pid, [sys.executable, "-c", f"from driver import *\\nstart()\\nos.write({w}, bytes([alloc(64 * MIB)[0]]))"])
        codes.append(os.read(r, 1)[0])
        print(json.dumps([codes[0][0], codes[1]]))
    """)
    command = c.command([sys.executable, "-c", code])
    done = subprocess.run(["unshare", "-rpf" if UNSHARE == ["-rm"] else "-pf", "--mount-proc", *command], capture_output=True,
                          text=True, check=False, timeout=60)
    if done.returncode == 77 or "ns_last_pid" in done.stderr:
        pytest.skip("no process can be given a chosen pid here")
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr


def test_a_child_that_inherits_nothing_is_held(container, needs_root):
    """No environment, no descriptors, another user, another session: /etc/ld.so.preload is what it cannot leave behind."""
    c = container(64 * MIB)
    for folder in (c.folder.parent, c.node.folder):
        folder.chmod(0o755)
    over, bin_ = c.folder.parent / "etc", c.folder.parent / "bin"
    for name in ("upper", "work"):
        (over / name).mkdir(parents=True)
    bin_.mkdir()
    for path in (c.build / "lib/libvgpu.so", c.build / "tests/guest-tricks", *(c.build / "sim").glob("*.so.1")):
        shutil.copy(path, bin_)  # a clone below /root is closed to other users
    (over / "upper/ld.so.preload").write_text(f"{bin_}/libvgpu.so\n")
    code = "import os; os.chdir('/'); os.setsid(); os.closerange(3, 1000); os.setgid(65534); os.setuid(65534); " \
           f"os.execve('{bin_}/guest-tricks', ['x', 'asks'], {{'LD_LIBRARY_PATH': '{bin_}', 'HAMI_SIM_DIR': " \
           f"'{c.node.env['HAMI_SIM_DIR']}'}})"
    mounts = f"mount -t tmpfs none {over}/work && mkdir {over}/work/u {over}/work/w && cp {over}/upper/ld.so.preload {over}/work/u && " \
             f"mount -t overlay none -o lowerdir=/etc,upperdir={over}/work/u,workdir={over}/work/w /etc && exec \"$@\""
    holder = c.start(["sh", "-c", mounts, "sh", sys.executable, "-c", code], preload=False)
    out, err = holder.communicate(timeout=60)
    if holder.returncode == 32:
        pytest.skip(f"no overlay mount here: {err}")
    assert (holder.returncode, out, err) == (0, "0 0 0\n", "")
    assert c.snapshot()["attached"] == 1


@pytest.mark.parametrize("how, status", [("return", 3), ("exit", 3), ("_exit", 3), ("quick_exit", 3), ("abort", 134), ("pthread_exit", 0)])
def test_no_way_to_end_waits(node, container_on, how, status):
    """Others are in calls and waiting for their share at that moment: 10 % of the card, with seconds of work queued."""
    c = container_on(node, cores=10, policy="force")
    before = time.monotonic()
    got = trick(c, "ends", how)
    took = time.monotonic() - before
    print(f"{how}: {took:.2f} s")
    assert got == (status, "") or (status == 134 and got == (-6, ""))
    assert took < 5, "a launch waits for its share for up to 10 s"
    assert c.python("start()\nprint(json.dumps([used(), alloc(4 << 30)[0]]))") == [0, 0]


def test_forbidden_system_calls_give_nobody_more(container):
    assert trick(container(64 * MIB), "seccomp") == (0, "2 0 0\n")
