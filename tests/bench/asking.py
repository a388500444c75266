"""What the scheduler's benches share: a scheduler beside fixed lists, and requests of it over one connection that is kept."""
import json
import pathlib
import re
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration/sched"), str(TESTS / "integration/kube"), str(TESTS / "integration")]

from kube_peer import write_kubeconfig  # noqa: E402
from sched_peer import Cluster, Scheduler, gpu, pod, wait_until  # noqa: E402,F401


def kubeconfig_of(lists, folder):
    """The flag that leads to them."""
    return f"--kubeconfig={write_kubeconfig(folder / 'kubeconfig', f'http://127.0.0.1:{lists.port}')}"


def post(path, tree):
    """A request as it is on the wire."""
    body = json.dumps(tree).encode()
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def filter_request(a_pod, names):
    return post("/filter", {"Pod": a_pod, "Nodes": None, "NodeNames": names})


def ask(sock, text):
    """(milliseconds, body)."""
    begun = time.perf_counter()
    sock.sendall(text)
    head, _, body = sock.recv(1 << 20).partition(b"\r\n\r\n")
    parts, left = [body], int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
    while left > 0:
        parts.append(sock.recv(1 << 20))
        left -= len(parts[-1])
    took = 1000 * (time.perf_counter() - begun)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head)
    return took, b"".join(parts)


def latencies_ms(sock, texts, calls):
    return [ask(sock, texts[i % len(texts)])[0] for i in range(calls)]
