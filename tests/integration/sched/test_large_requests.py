"""What reaches the ports is answered within bounds of memory and time, whatever is in it, on the paths that read it."""
import json
import threading
import time

import pytest

from sched_peer import gpu, pod, read_answer, wait_until

MIB = 1 << 20
POST = [("Content-Type", "application/json")]
POD = json.dumps(pod("p", **gpu(100)))


class Beside:
    """Asks for /healthz all the time, on one connection; `slowest` is the longest that it waited, in seconds."""

    def __init__(self, scheduler):
        self.scheduler, self.slowest, self.asked = scheduler, 0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with self.scheduler.connect(timeout=120) as sock:
            while self.asked == 0 or not self.over.wait(0.02):
                began = time.monotonic()
                assert self.scheduler.ask("GET", "/healthz", on=sock)[0] == 200
                self.slowest, self.asked = max(self.slowest, time.monotonic() - began), self.asked + 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def filled(head, item, tail, size):
    """As many items as make a body of that size."""
    count = (size - len(head) - len(tail)) // len(item)
    return (head + item * count).rstrip(",").encode() + tail.encode()


def node(name, cards, spare):
    """As a Cluster Autoscaler sends it: with what else a Node has, which is most of it."""
    register = [{"id": f"GPU-{name}-{i}", "index": i, "count": 10, "devmem": 40000, "devcore": 100, "type": f"NVIDIA {name} {i}",
                 "mode": "hami-core", "health": True} for i in range(cards)]
    score = [{"uuid": register[0]["id"], "score": {register[-1]["id"]: 10}}]
    return json.dumps({"metadata": {"name": name, "annotations": {
        "hami.io/node-nvidia-register": json.dumps(register), "hami.io/node-nvidia-score": json.dumps(score), "x": "y" * spare}},
        "status": {"allocatable": {"nvidia.com/gpu": "10"}}})


def with_nodes(nodes):
    return f'{{"Pod":{POD},"Nodes":{{"items":[{",".join(nodes)}]}}}}'.encode()


def review(spec, annotations=""):
    return '{"request":{"operation":"CREATE","object":{"kind":"Pod","metadata":{"annotations":{%s}},"spec":{%s' % (annotations, spec)


# What the answer says, or None: an answer that places the pod.
ATTACKS = {
    "names": ("/filter", lambda: filled(f'{{"Pod":{POD},"NodeNames":[', '"",', "]}", 64 * MIB), "more than 65536"),
    "long-names": ("/filter", lambda: filled(f'{{"Pod":{POD},"NodeNames":["', "<", '"]}', 64 * MIB), "253"),
    "a-pod-of-lists": ("/filter", lambda: filled('{"Pod":{"x":[', "[[],[]],", "]}}", 64 * MIB), "Pod: is larger than 4 MiB"),
    "a-smaller-one": ("/filter", lambda: filled('{"Pod":{"x":[', "[[],[]],", '],"metadata":{}}}', 4 * MIB), "Pod: has more than"),
    "a-node-of-lists": ("/filter", lambda: filled(f'{{"Pod":{POD},"Nodes":{{"items":[{{"x":[', "[[],[]],", "]}]}}", 64 * MIB),
                        "larger than 4 MiB"),
    "nodes-of-many-cards": ("/filter", lambda: with_nodes(node(f"n{i}", 1000, 0) for i in range(300)), "too many cards"),
    "many-nodes": ("/filter", lambda: filled(f'{{"Pod":{POD},"Nodes":{{"items":[', "{},", "]}}", 64 * MIB), "more than 65536"),
    "an-autoscalers": ("/filter", lambda: with_nodes(node(f"n{i}", 8, 10000) for i in range(5000)), None),
    "containers": ("/webhook", lambda: filled(review('"containers":['), "{},", "]}}}}", 7 * MIB), "has more than"),
    "fewer-containers": ("/webhook", lambda: filled(review('"containers":['), "{},", "]}}}}", MIB // 4), "more than 1024 containers"),
    "lists": ("/webhook", lambda: filled(review('"x":['), "[[],[]],", "]}}}}", 7 * MIB), "has more than"),
    "types": ("/webhook", lambda: (review('"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}]',
                                          '"nvidia.com/use-gputype":"' + "~," * 3 * MIB + '"') + "}}}}").encode(),
              "is longer than 16384 bytes"),
    "a-binding": ("/bind", lambda: b'{"PodName":"%s"}' % (b"x" * 60 * MIB), "too large"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_one_large_request(scheduler, cluster, name):
    path, body, says = ATTACKS[name]
    cluster.node("known")
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    before = scheduler.rss_kib("VmHWM")
    body = body()
    with Beside(scheduler) as beside:
        with scheduler.connect(timeout=120) as sock:
            answer = scheduler.ask("POST", path, body, POST, on=sock)[2].decode()
    print(name, len(body), "bytes: +", (scheduler.rss_kib("VmHWM") - before) >> 10, "MiB, /healthz waited", round(beside.slowest, 3))
    if says is None:
        assert len(json.loads(answer)["Nodes"]["items"]) == 1, answer[:300]
    else:
        assert says in answer, answer[:300]
    if not scheduler.sanitized:
        assert scheduler.rss_kib("VmHWM") - before < 256 << 10
        # Far below the deadlines of a Lease and of a liveness probe; mostly the copying of 64 MiB.
        assert beside.slowest < 5


def test_a_thousand_at_once(scheduler, cluster):
    """Each is half way through a body of 100 KiB, and all are answered; then each asks again what schedulers ask all day."""
    names = [f"n{i}" for i in range(500)]
    for name in names:
        cluster.node(name)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}").wait_ready()
    before = scheduler.rss_kib("VmHWM")
    pad = "x" * (100 << 10)
    filters = [json.dumps({"Pod": pod(f"p{i}", **gpu(100)), "NodeNames": names, "pad": pad}).encode() for i in range(1000)]
    small = [json.dumps({"Pod": pod(f"p{i}", **gpu(50000)), "NodeNames": names}).encode() for i in range(1000)]
    admit = (review('"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":1}}}]') + "}}}}").encode()

    def head(path, body):
        return f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    socks = []
    with Beside(scheduler) as beside:
        for body in filters[:999]:  # /healthz has the other one
            socks.append(scheduler.connect(timeout=120))
            socks[-1].sendall(head("/filter", body) + body[:-10])
        for sock, body in zip(socks, filters):
            sock.sendall(body[-10:])
            assert len(json.loads(read_answer(sock)[2])["NodeNames"]) == 1
        for sock, body in zip(socks, small):
            sock.sendall(head("/filter", body) + body)
        for sock in socks:
            assert len(json.loads(read_answer(sock)[2])["FailedAndUnresolvableNodes"]) == 500
        for sock in socks:
            sock.sendall(head("/webhook", admit) + admit)
        for sock in socks:
            assert json.loads(read_answer(sock)[2])["response"]["allowed"]
    more = scheduler.rss_kib("VmHWM") - before
    print(f"1,000 connections: + {more >> 10} MiB, /healthz waited {beside.slowest:.3f}")
    assert scheduler.metric("hami_scheduler_connections_dropped_total", reason="memory") == 0
    for sock in socks:
        sock.close()
    if not scheduler.sanitized:
        assert more < 256 << 10 and beside.slowest < 5


def test_headers_of_many_lines(scheduler):
    """A header line of four bytes is 30 times that where it is kept: it counts as what it is."""
    scheduler.start()
    before = scheduler.rss_kib("VmHWM")
    header = b"POST /webhook HTTP/1.1\r\nContent-Length: 10\r\n" + b"a:\r\n" * 4000 + b"\r\nx"
    socks = []
    with Beside(scheduler) as beside:
        for _ in range(990):
            socks.append(scheduler.connect(timeout=120))
            socks[-1].sendall(header)
        wait_until("they are read", 60, lambda: scheduler.metric("hami_scheduler_connections_dropped_total", reason="memory") > 0)
        assert scheduler.metric("hami_scheduler_held_bytes") <= 160 * MIB
    more = scheduler.rss_kib("VmHWM") - before
    print(f"headers: + {more >> 10} MiB, /healthz waited {beside.slowest:.3f}")
    for sock in socks:
        sock.close()
    if not scheduler.sanitized:
        assert more < 320 << 10 and beside.slowest < 5
