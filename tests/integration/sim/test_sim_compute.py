"""Compute on the simulated cards, on either clock, and faults."""
import json
import shutil
import subprocess
import sys
import time

from sim_peer import BUILD, LOST, MIB, MS, NO_NODE, NVML_PRELUDE, OK, RELOADED, T4_RESERVED, until


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


def test_virtual_clock_stands_until_all_are_there(sim):
    sim.up("t4x2", "--clock=virtual")
    users = [sim.user() for _ in range(3)]
    begin = users[0]("now")[1]
    for user in users[:2]:
        user.send("meet", 0, 3)
    time.sleep(0.2)
    assert sim.status()["now_ns"] == begin
    users[2].send("meet", 0, 3)
    for user in users:
        assert user.read() == (OK, begin + MS)


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
