"""Kernels on two cards that wait for each other, under a limit on both: they come through, near their share. On the
virtual clock: a kernel that waits occupies its card."""
import contextlib

import pytest

from kubelet_peer import wait_until
from region_words import OVERDUE_AT, word
from shares import BUILD, MS, start
from steps import release

TIMEOUT_S = 60


def run(container, devices, rounds, ns, at_once):
    """Processes of one container, one for each text of `devices`. Percent of the time that their kernels ran."""
    with contextlib.ExitStack() as stack:
        children = []
        for digits in devices:
            children.append(start(container, [BUILD / "tests/gpu-pair", digits, rounds, ns, at_once, len(devices)]))
            stack.callback(children[-1].wait)
            stack.callback(children[-1].kill)
        release(*children)
        took = []
        for child in children:
            out, err = child.communicate(timeout=TIMEOUT_S)
            assert child.returncode == 0, out + err
            took.append(int(out))
        return rounds * ns / MS * 100 / max(took)


@pytest.mark.parametrize("devices", [("01",), ("0", "1")])
@pytest.mark.parametrize("cores, ns, at_once", [(30, 2 * MS, 1), (10, 5 * MS, 1), (60, MS, 1), (30, MS // 5, 1), (50, 30 * MS, 1)])
def test_pairs_come_through_near_their_share(node_of, container_on, devices, cores, ns, at_once):
    node = node_of("t4x2.yaml", "--clock=virtual")
    rounds = max(8, cores * 5 * MS * 10 // ns // at_once * at_once)  # five seconds at the share
    got = run(container_on(node, cores), devices, rounds, ns, at_once)
    assert cores * 0.8 <= got <= cores + 3


@pytest.mark.parametrize("at_once", [8, 32])
def test_one_card_far_ahead_of_the_other(node_of, container_on, at_once):
    """What is launched on one card first waits for launches on the other that are still to come, behind more on the one.
    No launch waits for its longest, 10 s."""
    node = node_of("t4x2.yaml", "--clock=virtual")
    rounds, c = 64, container_on(node, 20)
    run(c, ("01",), rounds, MS, at_once)
    assert [word(c.region, OVERDUE_AT, card) for card in (0, 1)] == [0, 0]


def test_a_kernel_whose_partner_never_comes_takes_its_process_alone(node_of, container_on):
    node = node_of("t4x2.yaml", "--clock=virtual")
    child = start(container_on(node, 100), [BUILD / "tests/gpu-pair", "0", 8, MS, 1, 1])
    release(child)
    wait_until("the clock runs", 10, lambda: node.status()["now_ns"] > 100 * MS)
    child.kill()
    child.wait()
    wait_until("the process is gone", 10, lambda: not node.status()["cards"][0]["processes"])
