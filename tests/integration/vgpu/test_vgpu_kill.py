"""kill -9 inside libvgpu: whatever a process was at, the next request in its container has all that it held."""
import os

import pytest

MIB = 1 << 20

# Of each operation; HAMI_KILL_POINTS=0: every instruction (some hours).
POINTS = os.environ.get("HAMI_KILL_POINTS", "4")


def test_killed_at_any_instruction_nothing_is_lost(container):
    c = container(64 * MIB)
    child = c.start([c.build / "tests/kill-steps", POINTS])
    out, err = child.communicate(timeout=None if int(POINTS) not in range(1, 41) else 300)
    print(out)
    if child.returncode == 77:
        pytest.skip(err.strip())
    assert child.returncode == 0, out + err
    card = c.snapshot()["cards"][0]
    assert card["used"] == 0 and card["peak"] == 64 * MIB
