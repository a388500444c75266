"""The cluster of tests/e2e for a bench: whether it can be had, and it alone while a bench has it."""
import contextlib
import fcntl
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from node.real import CLUSTER, script  # noqa: E402


def why_not(program):
    """None where it can be had, with this program of its own."""
    if not (CLUSTER / "bin" / program).exists():
        return "the cluster is not built: make test-cluster builds it"
    return None if os.geteuid() == 0 else "the cluster needs root"


@contextlib.contextmanager
def alone():
    """Nothing runs there before and afterwards."""
    with open(CLUSTER / "test.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # down.sh ends whatever runs there
        script("down.sh", "--wipe")
        try:
            yield
        finally:
            script("down.sh", "--wipe", check=False)
