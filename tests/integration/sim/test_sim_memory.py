"""Memory of the simulated cards: what processes hold, and that the dead give it back."""
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

from sim_peer import MIB, MS, NO_CARD, NO_MEMORY, OK, RELOADED, T4_CONTEXT, T4_RESERVED, until

TORN = 4096  # by which lockdie leaves the card's sum too high, until that is mended


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
    """Processes that charge, release, fork and are killed at random moments, for 3 s: never above the card, but for the
    sums that those leave wrong who die with the lock in hand; and nothing is left of them."""
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
        card = sim.card()
        assert card["used_bytes"] <= total + len(crowd) * TORN and card["peak_bytes"] <= total
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
