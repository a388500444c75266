"""The simulated node as its users see it: hami-simctl, the shared state, and libnvidia-ml.so.1 through ctypes."""
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
NODES = REPO / "sim" / "nodes"
MIB = 1 << 20
MS = 1_000_000
T4_RESERVED = 450 * MIB
T4_CONTEXT = 104 * MIB
OK, NO_NODE, NO_CARD, NO_MEMORY, LOST, NOT_FOUND, RELOADED = range(7)


def until(what, probe, seconds=5):
    end = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def sanitizer_runtime():
    """What must be preloaded so that Python can load a library built with sanitizers; None where it needs nothing."""
    library = BUILD / "sim/libnvidia-ml.so.1"
    if "__asan_init" not in subprocess.run(["nm", "-D", library], text=True, capture_output=True).stdout:
        return None
    linked = re.search(r"libasan\S* => (\S+)",
                       subprocess.run(["ldd", library], text=True, capture_output=True).stdout)
    if linked:
        return linked[1]
    return subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], text=True, check=True,
                          capture_output=True).stdout.strip()


class Sim:
    def __init__(self, folder):
        self.dir = folder
        self.env = dict(os.environ, HAMI_SIM_DIR=str(folder), LD_LIBRARY_PATH=str(BUILD / "sim"))
        self.env.pop("NVIDIA_VISIBLE_DEVICES", None)
        runtime = sanitizer_runtime()
        # Python's own leaks are not ours.
        preload = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"} if runtime else {}
        self.python_env = dict(self.env, **preload)
        self.users = []

    def run(self, *words, **kw):
        return subprocess.run([kw.pop("program", BUILD / "bin/hami-simctl"), *map(str, words)], env=kw.pop("env", self.env), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30, **kw)

    def ctl(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def up(self, node="t4x2", *words):
        self.ctl("up", NODES / f"{node}.yaml", *words)
        return self

    def status(self):
        return json.loads(self.ctl("status", "-j"))

    def card(self, index=0):
        return self.status()["cards"][index]

    def user(self, prefix=()):
        user = User([*prefix, str(BUILD / "tests/sim_user")], self.env)
        self.users.append(user)
        return user

    def nvml(self, code, **env):
        """Runs Python code with `nvml` (the library) and helpers at hand; what it prints as JSON."""
        done = subprocess.run([sys.executable, "-c", NVML_PRELUDE + code], env=dict(self.python_env, **env), text=True,
                              capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class User:
    def __init__(self, argv, env):
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.attached, self.pid = self.read()

    def read(self):
        result, number = self.process.stdout.readline().split()
        return int(result), int(number)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def sim(short_tmp):
    node = Sim(short_tmp / "n")
    yield node
    for user in node.users:
        user.kill()
    if node.dir.exists():
        node.run("down")


NVML_PRELUDE = """
import ctypes, json, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
u32, u64, ptr = ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_void_p
def handle(index):
    h = ptr()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(h)) == 0
    return h
def text(call, *args):
    b = ctypes.create_string_buffer(96)
    r = getattr(nvml, call)(*args, b, 96)
    return b.value.decode() if r == 0 else r
def number(call, *args):
    v = u32()
    r = getattr(nvml, call)(*args, ctypes.byref(v))
    return v.value if r == 0 else -r
class Memory(ctypes.Structure):
    _fields_ = [("total", u64), ("free", u64), ("used", u64)]
class Process(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32)]
class Sample(ctypes.Structure):
    _fields_ = [("pid", u32), ("at", u64), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32)]
def memory(h):
    m = Memory()
    r = nvml.nvmlDeviceGetMemoryInfo(h, ctypes.byref(m))
    return [m.total, m.free, m.used] if r == 0 else r
def processes(h, call="nvmlDeviceGetComputeRunningProcesses_v3"):
    n, out = u32(64), (Process * 64)()
    assert getattr(nvml, call)(h, ctypes.byref(n), out) == 0
    return {out[i].pid: out[i].used for i in range(n.value)}
"""


# ---- up and down

def test_up_makes_and_down_removes_everything(sim):
    out = sim.ctl("up", NODES / "t4x2.yaml")
    assert "node t4x2 is up" in out and "2 cards" in out
    assert stat.S_IMODE(sim.dir.stat().st_mode) == 0o755
    for name in ("socket", "state"):
        assert stat.S_IMODE((sim.dir / name).stat().st_mode) == 0o666
    nodes = sorted(p.name for p in (sim.dir / "dev").iterdir())
    assert nodes == ["nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidiactl"]
    daemon = sim.status()["daemon_pid"]
    sim.ctl("gpu", 0, "hold", 100)
    holder = sim.card()["processes"][0]["pid"]
    sim.ctl("down")
    assert not sim.dir.exists()
    for pid in (daemon, holder):
        assert not pathlib.Path(f"/proc/{pid}").exists() or "Z" in pathlib.Path(f"/proc/{pid}/stat").read_text()


def test_down_leaves_a_folder_that_was_there(sim):
    sim.dir.mkdir()
    (sim.dir / "mine").write_text("x")
    sim.up()
    sim.ctl("down")
    assert [p.name for p in sim.dir.iterdir()] == ["mine"]


def test_down_after_the_daemon_was_killed(sim):
    sim.up()
    os.kill(sim.status()["daemon_pid"], signal.SIGKILL)
    until("socket is dead", lambda: sim.run("status").returncode == 1)
    sim.ctl("down")
    assert not sim.dir.exists()


def test_cdi_spec_is_what_a_runtime_needs(sim):
    sim.up("l4x4")
    spec = json.loads((sim.dir / "cdi/nvidia.json").read_text())
    assert spec["kind"] == "nvidia.com/gpu" and spec["cdiVersion"] == "0.5.0"
    uuids = [c["uuid"] for c in sim.status()["cards"]]
    assert [d["name"] for d in spec["devices"]] == sum(([str(i), u] for i, u in enumerate(uuids)), []) + ["all"]
    nodes = {d["name"]: [n["path"] for n in d["containerEdits"]["deviceNodes"]] for d in spec["devices"]}
    assert nodes[uuids[2]] == nodes["2"] == ["/dev/nvidia2"]
    assert nodes["all"] == [f"/dev/nvidia{i}" for i in range(4)]
    common = spec["containerEdits"]
    assert common["env"] == [f"HAMI_SIM_DIR={sim.dir}"]
    for node in common["deviceNodes"] + spec["devices"][0]["containerEdits"]["deviceNodes"]:
        assert pathlib.Path(node["hostPath"]).exists()
    mounts = {m["containerPath"]: m["hostPath"] for m in common["mounts"]}
    assert mounts[str(sim.dir)] == str(sim.dir)
    library = next(m for m in mounts if m.endswith("/libnvidia-ml.so.1"))
    assert pathlib.Path(mounts[library]).resolve() == (BUILD / "sim/libnvidia-ml.so.1").resolve()


@pytest.mark.parametrize("words, code, error", [
    ([], 2, "no command; see --help"),
    (["upp"], 2, 'unknown command "upp"; see --help'),
    (["up"], 2, "up: too few words; see --help"),
    (["up", "/none.yaml"], 2, "/none.yaml: No such file or directory"),
    (["up", "NODE", "--clock=fast"], 2, '--clock: "fast" is none of wall|virtual'),
    (["up", "BAD"], 2, "bad.yaml: line 1: name: is missing"),
    (["--dirr=x", "status"], 2, 'unknown option "--dirr=x"; see --help'),
    (["status"], 1, "No such file or directory"),
    (["down"], 1, "No such file or directory"),
])
def test_bad_words_without_a_node(sim, short_tmp, words, code, error):
    (short_tmp / "bad.yaml").write_text("driver_version: x\n")
    words = [{"NODE": NODES / "t4x2.yaml", "BAD": short_tmp / "bad.yaml"}.get(w, w) for w in words]
    done = sim.run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(r"hami-simctl: .*\n", done.stderr) and error in done.stderr


@pytest.mark.parametrize("words, error", [
    (["gpu"], "gpu: too few words"),
    (["gpu", "2", "lost"], "GPU 2: this node has 2"),
    (["gpu", "-1", "lost"], "unknown option"),
    (["gpu", "x", "lost"], 'GPU: "x" is not a number between 0 and 15'),
    (["gpu", "0", "explode"], 'gpu N: unknown verb "explode"'),
    (["gpu", "0", "xid"], "gpu N xid takes 1 more words"),
    (["gpu", "0", "xid", "0"], 'NUMBER: "0" is not a number between 1 and 999'),
    (["gpu", "0", "lost", "now"], "gpu N lost takes 0 more words"),
    (["gpu", "0", "nvml-error", "nvmlDeviceGetNam", "3"], '"nvmlDeviceGetNam" is no NVML call'),
    (["gpu", "0", "nvml-error", "nvmlDeviceGetName", "ten"], 'CODE: "ten" is not a number between 0 and 999'),
    (["gpu", "0", "nvml-hang", "1.5"], 'SECONDS: "1.5" is not a number'),
    (["gpu", "0", "hold", "-5"], "unknown option"),
    (["driver-reload", "--down-ms=x"], '--down-ms: "x" is not a number'),
])
def test_bad_words_with_a_node(sim, words, error):
    sim.up()
    before = sim.status()
    done = sim.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
    after = sim.status()
    before["now_ns"] = after["now_ns"]
    assert after == before


def test_no_folder_named(sim):
    env = {k: v for k, v in sim.env.items() if k != "HAMI_SIM_DIR"}
    done = sim.run("status", env=env)
    assert done.returncode == 2 and "set HAMI_SIM_DIR or give --dir" in done.stderr


def test_a_second_node_in_the_same_folder_is_refused(sim):
    sim.up()
    first = sim.status()["daemon_pid"]
    done = sim.run("up", NODES / "l4x4.yaml")
    assert done.returncode == 1 and "is up in" in done.stderr
    assert sim.status()["daemon_pid"] == first


def test_a_path_too_long_for_a_socket(sim, short_tmp):
    done = sim.run(f"--dir={short_tmp / ('x' * 100)}", "up", NODES / "t4x2.yaml")
    assert done.returncode == 2 and "longer than a socket's path may be" in done.stderr


# ---- Memory

def test_two_processes_see_each_other_and_stop_at_the_card(sim):
    sim.up()
    a, b = sim.user(), sim.user()
    total = 15360 * MIB
    assert a("charge", 0, 8000 * MIB) == (OK, 8000 * MIB)
    assert b("used", 0) == (OK, T4_RESERVED + 8000 * MIB)
    room = total - T4_RESERVED - 8000 * MIB
    assert b("charge", 0, room + 1)[0] == NO_MEMORY
    assert b("charge", 0, room)[0] == OK
    assert a("charge", 0, 1)[0] == NO_MEMORY
    assert a("charge", 1, 1)[0] == OK
    card = sim.card()
    assert card["used_bytes"] == card["peak_bytes"] == total
    assert {p["pid"]: p["bytes"] for p in card["processes"]} == {a.pid: 8000 * MIB, b.pid: room}
    assert b("release", 0, room)[0] == OK
    assert sim.card()["peak_bytes"] == total and a("used", 0)[1] == T4_RESERVED + 8000 * MIB
    assert a("charge", 2, 1)[0] == NO_CARD


def test_a_killed_process_gives_everything_back(sim):
    sim.up()
    user = sim.user()
    assert user("charge", 0, 5 * MIB)[0] == OK
    assert user("charge", 1, 7 * MIB)[0] == OK
    assert user("submit", 0, 3600 * 1000 * MS)[0] == OK
    user.kill()
    until("memory is back", lambda: all(c["used_bytes"] == T4_RESERVED for c in sim.status()["cards"]))
    assert all(c["processes"] == [] for c in sim.status()["cards"])
    other = sim.user()
    ticket = other("submit", 0, MS)[1]
    start = time.monotonic()
    assert other("wait", 0, ticket)[0] == OK  # not behind an hour of a dead one's work
    assert time.monotonic() - start < 2


def test_a_process_killed_with_the_lock_in_hand(sim):
    sim.up()
    user, other = sim.user(), sim.user()
    assert user("charge", 0, 5 * MIB)[0] == OK
    assert other("charge", 0, MIB)[0] == OK
    user.send("lockdie", 0)
    user.process.wait()
    assert other("charge", 0, MIB)[0] == OK
    until("the sum is mended", lambda: sim.card()["used_bytes"] == T4_RESERVED + 2 * MIB)


def test_the_ledger_is_exact_after_chaos(sim):
    """Processes that charge, release, fork and are killed at random moments, for 3 s: never above the card, and
    nothing is left of them."""
    sim.up("sm20")
    rng = random.Random(7)
    total, kept = 8192 * MIB, sim.user()
    assert kept("charge", 0, 100 * MIB)[0] == OK
    end = time.monotonic() + 3
    while time.monotonic() < end:
        crowd = [sim.user() for _ in range(8)]
        for user in crowd:
            for _ in range(rng.randrange(1, 40)):
                word = rng.choice(["charge", "charge", "charge", "release", "submit"])
                user.send(word, 0, rng.randrange(1, 800) * MIB if word != "submit" else rng.randrange(10 * MS))
            if rng.random() < 0.3:
                user.send("lockdie", 0)
        assert sim.card()["used_bytes"] <= total
        for user in crowd:
            time.sleep(rng.random() / 200)
            user.kill()
        sim.users = [kept]
    until("nothing is left", lambda: len(sim.card()["processes"]) == 1)
    card = sim.card()
    assert card["used_bytes"] == card["reserved_bytes"] + 100 * MIB and card["peak_bytes"] <= total
    assert kept("charge", 0, total - card["used_bytes"])[0] == OK


def test_a_child_by_fork_is_a_process_of_its_own(sim):
    sim.up()
    user = sim.user()
    assert user("charge", 0, 5 * MIB)[0] == OK
    child = user("fork")[1]
    assert child != user.pid
    assert user("own", 0) == (OK, 0)
    assert user("charge", 0, 3 * MIB)[0] == OK
    assert {p["pid"]: p["bytes"] for p in sim.card()["processes"]} == {user.pid: 5 * MIB, child: 3 * MIB}
    os.kill(user.pid, signal.SIGKILL)  # the child still holds what it inherited of the parent's connection
    until("the parent's memory is back", lambda: [p["pid"] for p in sim.card()["processes"]] == [child])
    os.kill(child, signal.SIGKILL)
    until("all is back", lambda: sim.card()["used_bytes"] == T4_RESERVED)


def test_a_death_is_noticed_while_a_child_holds_the_connection(sim):
    sim.up()
    user = sim.user()
    assert user("charge", 0, MIB)[0] == OK
    child = user("rawfork")[1]
    try:
        user.kill()
        until("memory is back", lambda: sim.card()["used_bytes"] == T4_RESERVED)
        assert pathlib.Path(f"/proc/{child}").exists()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_process_that_closes_all_its_descriptors_loses_its_card(sim):
    sim.up()
    user = sim.user()
    assert user("charge", 0, MIB)[0] == OK
    assert user("closefds")[0] == OK
    until("it is gone", lambda: sim.card()["processes"] == [])
    assert user("charge", 0, MIB)[0] == RELOADED
    assert sim.card()["used_bytes"] == T4_RESERVED


def test_pids_are_the_hosts_across_namespaces(sim):
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces here")
    sim.up()
    user = sim.user(prefix=unshare)
    assert user.pid == 1  # as it sees itself
    assert user("charge", 0, MIB)[0] == OK
    host = sim.card()["processes"][0]["pid"]
    assert host != 1
    assert pathlib.Path(f"/proc/{host}/comm").read_text() == "sim_user\n"
    assert re.search(r"NSpid:\s+%d\s+1$" % host, pathlib.Path(f"/proc/{host}/status").read_text(), re.M)
    user.kill()
    until("memory is back", lambda: sim.card()["used_bytes"] == T4_RESERVED)


def test_hold(sim):
    sim.up()
    out = sim.ctl("gpu", 1, "hold", 1000)
    pid = int(re.fullmatch(r"pid (\d+) holds 1000 MiB of GPU 1\n", out)[1])
    card = sim.card(1)
    assert card["processes"][0]["pid"] == pid and card["processes"][0]["holder"]
    assert card["used_bytes"] == T4_RESERVED + T4_CONTEXT + 1000 * MIB
    done = sim.run("gpu", 1, "hold", 15000)
    assert done.returncode == 1 and "has not that much memory left" in done.stderr
    assert sim.ctl("gpu", 1, "hold", 0) == "1 stray processes ended\n"
    until("it ended", lambda: sim.card(1)["used_bytes"] == T4_RESERVED)


# ---- Compute

def test_virtual_two_equal_processes_get_half_each(sim):
    sim.up("t4x2", "--clock=virtual")
    a, b = sim.user(), sim.user()
    begin = a("now")[1]
    tickets = [u("submit", 0, 1000 * MS)[1] for u in (a, b)]
    start = time.monotonic()
    a.send("wait", 0, tickets[0])
    b.send("wait", 0, tickets[1])
    assert a.read()[0] == OK
    a.process.stdin.close()
    assert b.read()[0] == OK
    assert time.monotonic() - start < 2
    # Turns of 2 ms: the first is done one turn before the second, which is done when all the work is.
    ends = [p["busy_ns"] for p in sim.card()["processes"]]
    assert b("end", 0, tickets[1]) == (OK, begin + 2000 * MS)
    assert sim.card()["busy_ns"] == 2000 * MS and ends[-1] == 1000 * MS


def test_virtual_time_is_exact_and_stands_still(sim):
    sim.up("t4x2", "--clock=virtual")
    user = sim.user()
    begin = user("now")[1]
    at = begin
    for ns in (1, 999, 10 * MS, 3600 * 1000 * MS):
        ticket = user("submit", 0, ns)[1]
        assert user("done", 0, ticket) == (OK, 0)
        at += ns
        assert user("wait", 0, ticket) == (OK, at)
        assert user("end", 0, ticket) == (OK, at)
    time.sleep(0.05)
    assert user("now") == (OK, at)
    assert user("sleep", 5 * MS) == (OK, at + 5 * MS)


def test_virtual_clock_waits_for_those_who_work(sim):
    """Two that submit and wait in turn share exactly, however the machine schedules them."""
    sim.up("t4x2", "--clock=virtual")
    users = [sim.user(), sim.user()]
    for user in users:
        user("submit", 0, 0)
    for _ in range(20):
        tickets = [user("submit", 0, 2 * MS)[1] for user in users]
        for user, ticket in zip(users, tickets):
            user.send("wait", 0, ticket)
        for user in users:
            assert user.read()[0] == OK
    assert [p["busy_ns"] for p in sim.card()["processes"]] == [40 * MS, 40 * MS]
    assert sim.status()["now_ns"] == 80 * MS


def test_virtual_clock_waits_for_one_who_is_about_to_submit(sim):
    sim.up("t4x2", "--clock=virtual")
    a, b = sim.user(), sim.user()
    for user in (a, b):
        user("submit", 0, 0)
    ends = None
    for _ in range(10):  # a machine that stops b for 50 ms makes it an idle process: that is no fault
        begin = a("now")[1]
        ta = a("submit", 0, 4 * MS)[1]
        a.send("wait", 0, ta)
        time.sleep(0.01)
        tb = b("submit", 0, 4 * MS)[1]
        assert b("wait", 0, tb)[0] == OK and a.read()[0] == OK
        ends = [a("end", 0, ta)[1] - begin, b("end", 0, tb)[1] - begin]
        if ends == [6 * MS, 8 * MS]:
            return
    assert ends == [6 * MS, 8 * MS]


def test_wall_clock_takes_its_time(sim):
    sim.up()
    user = sim.user()
    start = time.monotonic()
    ticket = user("submit", 0, 100 * MS)[1]
    assert user("done", 0, ticket) == (OK, 0)
    assert user("wait", 0, ticket)[0] == OK
    assert 0.1 <= time.monotonic() - start < 0.4
    assert user("done", 0, ticket) == (OK, 1)


def test_wall_clock_shares(sim):
    sim.up()
    a, b = sim.user(), sim.user()
    a("submit", 0, 10_000 * MS)
    b("submit", 0, 10_000 * MS)
    time.sleep(0.5)
    one, two = (p["busy_ns"] for p in sim.card()["processes"])
    assert abs(one - two) <= 4 * MS and one > 100 * MS


# ---- Faults

def test_lost_and_recovered(sim):
    sim.up()
    user, waiter = sim.user(), sim.user()
    assert user("charge", 0, MIB)[0] == OK
    ticket = waiter("submit", 0, 3600 * 1000 * MS)[1]
    waiter.send("wait", 0, ticket)
    sim.ctl("gpu", 0, "lost")
    assert waiter.read()[0] == LOST
    assert user("charge", 0, MIB)[0] == LOST and user("release", 0, MIB)[0] == LOST
    assert user("charge", 1, MIB)[0] == OK
    card = sim.card()
    assert card["lost"] and card["used_bytes"] == T4_RESERVED
    assert [e["xid"] for e in sim.status()["events"]] == [79]
    assert sim.run("gpu", 0, "lost").returncode == 1
    assert sim.nvml("""
nvml.nvmlInit_v2()
h = ptr()
print(json.dumps([number("nvmlDeviceGetCount_v2"), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h)),
                  text("nvmlDeviceGetName", handle(1))]))""") == [2, 15, "Tesla T4"]
    sim.ctl("gpu", 0, "recover")
    assert user("charge", 0, MIB)[0] == LOST  # what it had is gone: a program must start again
    assert sim.user()("charge", 0, MIB)[0] == OK


def test_virtual_waiters_learn_of_a_lost_card(sim):
    sim.up("t4x2", "--clock=virtual")
    busy, waiter = sim.user(), sim.user()
    busy("submit", 1, MS)
    ticket = waiter("submit", 0, 100 * MS)[1]
    sim.ctl("gpu", 0, "lost")
    assert waiter("wait", 0, ticket)[0] == LOST


def test_nvml_error_and_hang(sim):
    sim.up()
    sim.ctl("gpu", 1, "nvml-error", "nvmlDeviceGetName", 999)
    assert sim.card(1)["faults"] == [{"call": "nvmlDeviceGetName", "code": 999}]
    code = 'nvml.nvmlInit_v2(); print(json.dumps([text("nvmlDeviceGetName", handle(i)) for i in (0, 1)]))'
    assert sim.nvml(code) == ["Tesla T4", 999]
    sim.ctl("gpu", 1, "nvml-error", "nvmlDeviceGetName", 0)
    assert sim.nvml(code) == ["Tesla T4", "Tesla T4"]
    sim.ctl("gpu", 1, "nvml-hang", 60)
    hangs = subprocess.Popen([sys.executable, "-c", NVML_PRELUDE + code], env=sim.python_env, stdout=subprocess.PIPE)
    time.sleep(0.5)
    assert hangs.poll() is None
    sim.ctl("gpu", 1, "nvml-hang", 0)
    assert json.loads(hangs.communicate(timeout=10)[0]) == ["Tesla T4", "Tesla T4"]
    sim.ctl("gpu", 0, "nvml-error", "nvmlInit_v2", 18)
    assert sim.nvml("print(nvml.nvmlInit_v2())") == 18


def test_driver_reload(sim):
    sim.up()
    user = sim.user()
    assert user("charge", 0, MIB)[0] == OK
    nvml = subprocess.Popen([sys.executable, "-u", "-c", NVML_PRELUDE + """
nvml.nvmlInit_v2()
h = handle(0)
for line in sys.stdin:
    print(json.dumps([text("nvmlDeviceGetName", h), nvml.nvmlShutdown(), nvml.nvmlInit_v2()]))
"""], env=sim.python_env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask():
        nvml.stdin.write("x\n")
        nvml.stdin.flush()
        return json.loads(nvml.stdout.readline())
    try:
        assert ask() == ["Tesla T4", 0, 0]
        sim.ctl("driver-reload", "--down-ms=500")
        assert user("charge", 0, MIB)[0] == RELOADED
        assert sim.user().attached == NO_NODE
        assert ask() == [9, 0, 9]
        until("the driver is back", lambda: sim.run("status").returncode == 0)
        assert user("charge", 0, MIB)[0] == RELOADED
        assert sim.card()["processes"] == [] and sim.status()["generation"] == 2
        assert sim.user()("charge", 0, MIB)[0] == OK
        assert ask() == [1, 1, 0]
        assert ask() == ["Tesla T4", 0, 0]
    finally:
        nvml.kill()
        nvml.wait()


def test_only_its_own_user_may_disturb_a_node(sim, needs_root):
    sim.up()
    sim.dir.parent.chmod(0o755)
    program = shutil.copy(BUILD / "bin/hami-simctl", sim.dir.parent)  # the work tree may be root's alone
    done = sim.run("gpu", 0, "lost", user="nobody", env=dict(sim.env, HOME="/"), program=program)
    assert done.returncode == 1 and "only root and the simulation's own user" in done.stderr
    assert sim.run("status", user="nobody", program=program).returncode == 0


# ---- NVML

def test_nvml_without_a_node(sim):
    assert sim.nvml("""
print(json.dumps([number("nvmlDeviceGetCount_v2"), text("nvmlSystemGetDriverVersion"), nvml.nvmlInit_v2(),
                  nvml.nvmlShutdown(), nvml.nvmlDeviceClearCpuAffinity(None)]))""") == [-1, 1, 9, 1, 1]


def test_nvml_identity(sim):
    sim.up("a100x8-nvlink")
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = handle(2)
out = {"count": number("nvmlDeviceGetCount_v2"), "driver": text("nvmlSystemGetDriverVersion"),
       "name": text("nvmlDeviceGetName", h), "uuid": text("nvmlDeviceGetUUID", h),
       "minor": number("nvmlDeviceGetMinorNumber", h), "index": number("nvmlDeviceGetIndex", h),
       "numa": number("nvmlDeviceGetNumaNodeId", h), "cores": number("nvmlDeviceGetNumGpuCores", h)}
short = ctypes.create_string_buffer(8)
out["short"] = nvml.nvmlDeviceGetUUID(h, short, 8)
by = {}
for call, key in (("nvmlDeviceGetHandleByUUID", out["uuid"]), ("nvmlDeviceGetHandleByPciBusId_v2", "0000:47:00.0"),
                  ("nvmlDeviceGetHandleByPciBusId_v2", "00000000:47:00.0"),
                  ("nvmlDeviceGetHandleByPciBusId", "47:00.0")):
    g = ptr()
    by[call + key] = [getattr(nvml, call)(key.encode(), ctypes.byref(g)), g.value == h.value]
out["by"] = list(by.values())
g = ptr()
out["none"] = [nvml.nvmlDeviceGetHandleByUUID(b"GPU-0", ctypes.byref(g)),
               nvml.nvmlDeviceGetHandleByIndex_v2(8, ctypes.byref(g)), nvml.nvmlDeviceGetName(None, short, 8),
               nvml.nvmlDeviceGetName(ptr(1), short, 8), nvml.nvmlDeviceGetIndex(h, None)]
pci = ctypes.create_string_buffer(68)
out["pci"] = [nvml.nvmlDeviceGetPciInfo_v3(h, pci), pci.raw[36:68].split(b"\\0")[0].decode(),
              pci.raw[:16].split(b"\\0")[0].decode()]
major, minor = ctypes.c_int(), ctypes.c_int()
out["cc"] = [nvml.nvmlDeviceGetCudaComputeCapability(h, ctypes.byref(major), ctypes.byref(minor)), major.value,
             minor.value]
cuda = ctypes.c_int()
out["cuda"] = [nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(cuda)), cuda.value]
nvml.nvmlErrorString.restype = ctypes.c_char_p
out["strings"] = [nvml.nvmlErrorString(i).decode() for i in (0, 15, 999, 12345, -1)]
print(json.dumps(out))""")
    uuid = sim.card(2)["uuid"]
    assert got == {
        "count": 8, "driver": "550.90.07", "name": "NVIDIA A100-SXM4-40GB", "uuid": uuid, "minor": 2, "index": 2,
        "numa": 1, "cores": 6912, "short": 7, "by": [[0, True]] * 4, "none": [6, 2, 2, 2, 2],
        "pci": [0, "00000000:47:00.0", "0000:47:00.0"], "cc": [0, 8, 0], "cuda": [0, 12040],
        "strings": ["Success", "GPU is lost", "Unknown Error", "Unknown Error", "Unknown Error"]}


def test_nvml_memory_and_processes_agree_with_the_status(sim):
    sim.up()
    users = [sim.user() for _ in range(3)]
    for i, user in enumerate(users):
        assert user("charge", 0, (i + 1) * 100 * MIB)[0] == OK
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = handle(0)
class V2(ctypes.Structure):
    _fields_ = [("version", u32), ("total", u64), ("reserved", u64), ("free", u64), ("used", u64)]
v2 = V2(version=0x02000028)
old = V2(version=0x01000028)
class V1(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64)]
n, room = u32(0), u32(2)
v1 = (V1 * 3)()
three = u32(3)
few = (Process * 2)()
out = {"v1": memory(h), "v2": [nvml.nvmlDeviceGetMemoryInfo_v2(h, ctypes.byref(v2)), v2.total, v2.reserved, v2.free,
       v2.used], "old": nvml.nvmlDeviceGetMemoryInfo_v2(h, ctypes.byref(old)),
       "list": processes(h), "list2": processes(h, "nvmlDeviceGetComputeRunningProcesses_v2"),
       "need": [nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(n), None), n.value],
       "few": [nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(room), few), room.value],
       "list1": [nvml.nvmlDeviceGetComputeRunningProcesses(h, ctypes.byref(three), v1), {p.pid: p.used for p in v1}],
       "graphics": processes(h, "nvmlDeviceGetGraphicsRunningProcesses_v3"), "other": processes(handle(1))}
class Detail(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32), ("protected", u64)]
class List(ctypes.Structure):
    _fields_ = [("version", u32), ("mode", u32), ("count", u32), ("processes", ctypes.POINTER(Detail))]
d = (Detail * 8)()
l = List(0x01000018, 0, 8, d)
out["detail"] = [nvml.nvmlDeviceGetRunningProcessDetailList(h, ctypes.byref(l)), {d[i].pid: d[i].used for i in
                 range(l.count)}]
print(json.dumps(out))""")
    want = {str(u.pid): (i + 1) * 100 * MIB for i, u in enumerate(users)}
    total, used = 15360 * MIB, T4_RESERVED + 600 * MIB
    assert got["v1"] == [total, total - used, used]
    assert got["v2"] == [0, total, T4_RESERVED, total - used, 600 * MIB]
    assert got["old"] == 25
    assert got["list"] == got["list2"] == want and got["list1"] == [0, want] and got["detail"] == [0, want]
    assert got["need"] == got["few"] == [7, 3]
    assert got["graphics"] == got["other"] == {}


def test_nvml_topology(sim):
    sim.up("a100x8-nvlink")
    got = sim.nvml("""
nvml.nvmlInit_v2()
h = [handle(i) for i in range(8)]
pci = ctypes.create_string_buffer(68)
cpus = (ctypes.c_ulong * 4)()
count = u32(8)
near = (ptr * 8)()
print(json.dumps({
    "level": [number("nvmlDeviceGetTopologyCommonAncestor", h[0], h[i]) for i in range(3)],
    "nvlink": [number("nvmlDeviceGetP2PStatus", h[0], h[5], 2), number("nvmlDeviceGetP2PStatus", h[0], h[5], 0)],
    "links": [number("nvmlDeviceGetNvLinkState", h[0], i) for i in (0, 11, 12, 18)],
    "type": number("nvmlDeviceGetNvLinkRemoteDeviceType", h[0], 3),
    "remote": [nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(h[0], 7, pci), pci.raw[36:68].split(b"\\0")[0].decode()],
    "cpus": [nvml.nvmlDeviceGetCpuAffinity(h[0], 4, cpus), list(cpus)],
    "near": [nvml.nvmlDeviceGetTopologyNearestGpus(h[0], 20, ctypes.byref(count), near), count.value, near[0] ==
             h[1].value],
    "nodes": [nvml.nvmlDeviceGetMemoryAffinity(h[0], 1, cpus, 0), cpus[0]]}))""")
    assert got["level"] == [0, 20, 50]
    assert got["nvlink"] == [0, 0]
    assert got["links"] == [1, 1, -2, -2]
    assert got["type"] == 2 and got["remote"] == [0, "00000000:C5:00.0"]
    mask = [0xFFFF << 48, 0, 0xFFFF << 48, 0]
    assert got["cpus"] == [0, mask]
    assert got["near"] == [0, 1, True] and got["nodes"] == [0, 8]


def test_nvml_without_nvlink_or_mig(sim):
    sim.up("rtx4090x4")
    assert sim.nvml("""
nvml.nvmlInit_v2()
h, g = handle(0), handle(1)
m = (u32 * 2)()
print(json.dumps([number("nvmlDeviceGetNvLinkState", h, 0), number("nvmlDeviceGetP2PStatus", h, g, 2),
    number("nvmlDeviceGetP2PStatus", h, g, 0), nvml.nvmlDeviceGetMigMode(h, m, ctypes.byref(m, 4)),
    nvml.nvmlDeviceGetEccMode(h, m, ctypes.byref(m, 4)), text("nvmlDeviceGetSerial", h)]))""") == [-3, 5, 2, 3, 3, 3]


def test_nvml_mig(sim):
    sim.up("h100x8-mig")
    assert sim.nvml("""
nvml.nvmlInit_v2()
h = handle(7)
m = (u32 * 2)()
class Profile(ctypes.Structure):
    _fields_ = [(n, u32) for n in "id p2p slices instances sms ce dec enc jpeg ofa".split()] + [("memory", u64)]
p = Profile()
profiles = []
for i in range(18):
    if nvml.nvmlDeviceGetGpuInstanceProfileInfo(h, i, ctypes.byref(p)) == 0:
        profiles.append([i, p.id, p.slices, p.instances, p.sms, p.memory])
g = ptr()
print(json.dumps([nvml.nvmlDeviceGetMigMode(h, m, ctypes.byref(m, 4)), list(m), number("nvmlDeviceGetMaxMigDeviceCount",
    h), nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, 0, ctypes.byref(g)), profiles]))""") == [
        0, [1, 1], 7, 6, [[0, 19, 1, 7, 16, 9984], [1, 14, 2, 3, 32, 20096], [2, 9, 3, 2, 60, 40448],
                          [3, 5, 4, 1, 64, 40448], [4, 0, 7, 1, 132, 81152], [7, 20, 1, 1, 16, 9984],
                          [9, 15, 1, 4, 26, 20096]]]


UTILISATION = """
nvml.nvmlInit_v2()
h = handle(0)
class Rates(ctypes.Structure):
    _fields_ = [("gpu", u32), ("memory", u32)]
r = Rates()
n, out = u32(64), (Sample * 64)()
nvml.nvmlDeviceGetUtilizationRates(h, ctypes.byref(r))
result = nvml.nvmlDeviceGetProcessUtilization(h, out, ctypes.byref(n), u64(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
none = u32(0)
need = nvml.nvmlDeviceGetProcessUtilization(h, None, ctypes.byref(none), u64(0))
print(json.dumps({"gpu": r.gpu, "result": result, "sm": {out[i].pid: out[i].sm for i in range(n.value)},
    "at": max([out[i].at for i in range(n.value)], default=0), "need": [need, none.value],
    "temperature": number("nvmlDeviceGetTemperature", h, 0), "power": number("nvmlDeviceGetPowerUsage", h),
    "state": number("nvmlDeviceGetPerformanceState", h)}))
"""


def test_nvml_utilisation(sim):
    sim.up("t4x2", "--clock=virtual")
    idle = sim.nvml(UTILISATION)
    assert idle == {"gpu": 0, "result": 6, "sm": {}, "at": 0, "need": [6, 0], "temperature": 32, "power": 9000,
                    "state": 8}
    a, b = sim.user(), sim.user()
    for user in (a, b):
        user("submit", 0, 1000 * MS)
    a.send("wait", 0, 1000 * MS)
    assert b("wait", 0, 1000 * MS)[0] == OK  # 2 s of work: 12 samples
    busy = sim.nvml(UTILISATION)
    assert busy["gpu"] == 100 and busy["state"] == 0 and busy["power"] == 70000 and busy["temperature"] == 75
    assert busy["sm"] == {str(a.pid): 50, str(b.pid): 50} and busy["need"] == [7, 256]
    assert abs(busy["at"] / 1e6 - time.time()) < 60
    b("sleep", 10_000 * MS // 10)
    b("sleep", 10_000 * MS // 10)
    assert sim.nvml(UTILISATION)["gpu"] == 0


def test_nvml_xid_events(sim):
    sim.up()
    watcher = subprocess.Popen([sys.executable, "-u", "-c", NVML_PRELUDE + """
class Data(ctypes.Structure):
    _fields_ = [("device", ptr), ("type", u64), ("data", u64), ("gi", u32), ("ci", u32)]
nvml.nvmlInit_v2()
s, d = ptr(), Data()
assert nvml.nvmlEventSetCreate(ctypes.byref(s)) == 0
assert nvml.nvmlDeviceRegisterEvents(handle(1), u64(8), s) == 0
print(nvml.nvmlEventSetWait_v2(s, ctypes.byref(d), 0))
for line in sys.stdin:
    r = nvml.nvmlEventSetWait_v2(s, ctypes.byref(d), 5000)
    print(json.dumps([r, d.device == handle(1).value if r == 0 else None, d.type, d.data]))
"""], env=sim.python_env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask():
        watcher.stdin.write("x\n")
        watcher.stdin.flush()
        return json.loads(watcher.stdout.readline())
    try:
        assert watcher.stdout.readline() == "10\n"  # nothing yet
        sim.ctl("gpu", 1, "xid", 43)
        assert ask() == [0, True, 8, 43]
        sim.ctl("gpu", 0, "xid", 13)  # another card's
        sim.ctl("gpu", 1, "xid", 94)
        assert ask() == [0, True, 8, 94]
        watcher.stdin.write("x\n")
        watcher.stdin.flush()
        time.sleep(0.2)
        start = time.monotonic()
        sim.ctl("gpu", 1, "xid", 31)
        assert json.loads(watcher.stdout.readline()) == [0, True, 8, 31]
        assert time.monotonic() - start < 1  # woken, not polled to the end
    finally:
        watcher.kill()
        watcher.wait()


def test_visible_devices(sim):
    sim.up("l4x4")
    uuids = [c["uuid"] for c in sim.status()["cards"]]
    code = """
nvml.nvmlInit_v2()
n = number("nvmlDeviceGetCount_v2")
print(json.dumps([text("nvmlDeviceGetUUID", handle(i)) for i in range(n)]))"""
    assert sim.nvml(code) == uuids
    assert sim.nvml(code, NVIDIA_VISIBLE_DEVICES=f"{uuids[3]},{uuids[1]}") == [uuids[1], uuids[3]]
    assert sim.nvml(code, NVIDIA_VISIBLE_DEVICES="none") == []


def test_every_name_is_exported_and_answers(sim):
    sim.up()
    names = (REPO / "sim/nvml/nvml-symbols.txt").read_text().split()
    out = subprocess.run(["nm", "-D", "--defined-only", BUILD / "sim/libnvidia-ml.so.1"], text=True, check=True,
                         capture_output=True).stdout
    exported = {line.split()[2] for line in out.splitlines() if line.split()[1] == "T"}
    assert exported == set(names) | {"nvmlErrorString"} and len(names) >= 411
    modelled = re.findall(r"^CALL\((\w+)", (REPO / "sim/nvml/modelled.def").read_text(), re.M)
    assert len(set(modelled)) == len(modelled) and set(modelled) <= exported
    rest = sorted(exported - set(modelled))
    assert sim.nvml(f"""
names = {rest!r}
before = {{getattr(nvml, n)() for n in names}}
nvml.nvmlInit_v2()
print(json.dumps([sorted(before), sorted({{getattr(nvml, n)() for n in names}})]))""") == [[1], [3]]


def test_the_docs_list_what_is_modelled():
    calls = dict(re.findall(r'^CALL\((\w+), "([^"]*)"\)', (REPO / "sim/nvml/modelled.def").read_text(), re.M))
    docs = (REPO / "docs/simulation.md").read_text()
    listed = dict(re.findall(r"^\| `(nvml\w+)` \| (.*?) \|$", docs, re.M))
    assert listed == calls, "run sim/nvml/gen_docs.py"
    others = re.search(r"<!-- other NVML calls.*?-->\n(.*?)<!-- end -->", docs, re.S)[1].split()
    names = set((REPO / "sim/nvml/nvml-symbols.txt").read_text().split())
    assert sorted(others) == sorted(names - set(calls)) and len(others) > 200, "run sim/nvml/gen_docs.py"


def test_more_clients_than_descriptors(sim):
    """A daemon that cannot accept waits; it does not spin, and serves again once others have left."""
    limited = ["/bin/bash", "-c", 'ulimit -n 24; exec "$0" "$@"', str(BUILD / "bin/hami-simctl"), "up", str(NODES / "t4x2.yaml")]
    subprocess.run(limited, env=sim.env, check=True, capture_output=True)
    daemon = sim.status()["daemon_pid"]
    crowd = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(40)]
    for one in crowd:
        one.connect(str(sim.dir / "socket"))

    def cpu():
        fields = pathlib.Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = cpu()
    time.sleep(1)
    assert cpu() - before < 0.3
    for one in crowd:
        one.close()
    assert sim.user()("charge", 0, MIB)[0] == OK
