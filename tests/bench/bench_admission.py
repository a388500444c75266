"""What an admission costs beside /healthz in a cluster of 5,000 nodes: the recorded reviews, over one kept connection."""
import gzip
import json
import pathlib
import sys
import time

from figures import Figure, median
from fixed_lists import FixedLists

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration/sched"), str(TESTS / "integration/kube"), str(TESTS / "integration")]

from kube_peer import write_kubeconfig  # noqa: E402
from sched_peer import Scheduler  # noqa: E402

NODES = 5000


def reviews():
    """As the API server sends them: those of the chart's configuration."""
    with gzip.open(TESTS / "golden/webhook.jsonl.gz", "rt") as f:
        lines = [json.loads(line) for line in f]
    out = []
    for line in lines:
        if line.get("config") == "chart" and "object" in line:
            request = {"uid": "1", "namespace": "default", "operation": "CREATE", "userInfo": {"username": "u"},
                       "object": line["object"]}
            out.append(json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode())
    return out


def p99_ms(scheduler, sock, method, path, bodies):
    took = []
    for body in bodies:
        begun = time.perf_counter()
        status, _, _ = scheduler.ask(method, path, body, [("Content-Type", "application/json")], sock)
        took.append(1000 * (time.perf_counter() - begun))
        if status != 200:
            raise RuntimeError(f"{path}: {status}")
    return sorted(took)[len(took) * 99 // 100]


def measure(context):
    folder = context.folder / "admission"
    folder.mkdir()
    lists, scheduler = FixedLists.of_size(NODES, NODES, NODES), Scheduler(context.build, folder)
    bodies = reviews()
    try:
        kubeconfig = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{lists.port}")
        scheduler.start(f"--kubeconfig={kubeconfig}", "--scheduler-name=hami-scheduler").wait_ready()
        bare, asked = [], []
        with scheduler.connect() as sock:
            for _ in range(context.rounds):
                bare.append(p99_ms(scheduler, sock, "GET", "/healthz", [b""] * len(bodies)))
                asked.append(p99_ms(scheduler, sock, "POST", "/webhook", bodies))
        yield Figure("sched.webhook_p99", "ms", median(asked), "/healthz in the same run", median(bare), "<= peer + 1", why=f"{NODES} nodes, a share on each")
    finally:
        scheduler.end()
        lists.end()
