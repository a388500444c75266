"""What an admission costs beside /healthz in a cluster of 5,000 nodes: the recorded reviews, over one kept connection."""
import gzip
import json
import time

from asking import TESTS, Scheduler, kubeconfig_of
from figures import Figure, median
from fixed_lists import FixedLists

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
    bodies = reviews()
    with FixedLists.of_size(NODES, NODES, NODES) as lists, Scheduler(context.build, folder) as scheduler:
        scheduler.start(kubeconfig_of(lists, folder), "--scheduler-name=hami-scheduler").wait_ready()
        bare, asked = [], []
        with scheduler.connect() as sock:
            for _ in range(context.rounds):
                bare.append(p99_ms(scheduler, sock, "GET", "/healthz", [b""] * len(bodies)))
                asked.append(p99_ms(scheduler, sock, "POST", "/webhook", bodies))
        yield Figure("sched.webhook_p99", "ms", median(asked), "/healthz in the same run", median(bare), "<= peer + 1", why=f"{NODES} nodes, a share on each")
