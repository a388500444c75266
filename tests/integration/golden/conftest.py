"""The golden replay uses the API server of the kube tests, the scheduler of its own, and what made the recordings."""
import pathlib
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(INTEGRATION / "kube"), str(INTEGRATION / "sched"), str(INTEGRATION.parent / "golden")]
