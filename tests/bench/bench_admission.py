"""What an admission costs beside /healthz: the recorded reviews, over one connection that is kept."""
import gzip
import json
import pathlib
import sys
import time

from figures import Figure, median

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration/golden"), str(TESTS / "integration/sched"), str(TESTS / "integration")]

from sched_peer import Cluster, Scheduler  # noqa: E402

NODES = 50


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
    cluster, scheduler = Cluster(folder), Scheduler(context.build, folder)
    bodies = reviews()
    try:
        for n in range(NODES):
            cluster.node(f"n{n}")
        scheduler.start(f"--kubeconfig={cluster.kubeconfig}", "--scheduler-name=hami-scheduler")
        scheduler.wait_ready()
        bare, asked = [], []
        with scheduler.connect() as sock:
            for _ in range(context.rounds):
                bare.append(p99_ms(scheduler, sock, "GET", "/healthz", [b""] * len(bodies)))
                asked.append(p99_ms(scheduler, sock, "POST", "/webhook", bodies))
        yield Figure("sched.webhook_p99", "ms", median(asked), "/healthz in the same run", median(bare), "<= peer + 1")
    finally:
        scheduler.end()
        cluster.api.down()
