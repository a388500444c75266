"""The golden replay uses the API server of the kube tests and the scheduler of its own."""
import pathlib
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(INTEGRATION / "kube"), str(INTEGRATION / "sched")]
