"""How long a scheduler takes until it knows the cluster, beside curl that reads the same pages, one connection for each list as
the scheduler has; and what it weighs then. FULL=1: 5,000 nodes and 150,000 pods, 40,000 of them with a share."""
import os
import pathlib
import subprocess
import sys
import time

from figures import Figure, interleaved, median
from fixed_lists import FixedLists

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration/sched"), str(TESTS / "integration/kube"), str(TESTS / "integration")]

from kube_peer import write_kubeconfig  # noqa: E402
from sched_peer import Scheduler, wait_until  # noqa: E402

SIZES = (5000, 150000, 40000) if os.environ.get("FULL") else (1000, 15000, 4000)
PEER = "curl of the same pages"


class Reader:
    """A scheduler that reads the lists; each time another process."""

    def __init__(self, context, folder, lists):
        self.context, self.folder, self.lists, self.rss = context, folder, lists, []
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", f"http://127.0.0.1:{lists.port}")

    def seconds(self):
        it, begun = Scheduler(self.context.build, self.folder), time.perf_counter()
        try:
            it.start(f"--kubeconfig={self.kubeconfig}")
            wait_until("the first sync", 300, lambda: it.ask("GET", "/readyz")[0] == 200)
            took = time.perf_counter() - begun
            self.rss.append(it.rss_kib("VmHWM") / 1024)
            self.check(it)
            return took
        finally:
            it.end()

    @staticmethod
    def check(it):
        nodes, _, shares = SIZES
        known = it.metric("hami_scheduler_nodes", state="with-cards"), it.metric("hami_scheduler_holding_pods")
        if known != (nodes, shares):
            raise RuntimeError(f"of {nodes} nodes and {shares} shares it knows {known}")


def curl_seconds(port, paths):
    begun, curls = time.perf_counter(), []
    for plural in ("/nodes", "/pods", "/resourcequotas"):
        urls = [f"http://127.0.0.1:{port}{p}" for p in paths if p.split("?")[0].endswith(plural)]
        curls.append(subprocess.Popen(["curl", "-sSf", *(w for url in urls for w in ("-o", "/dev/null", url))]))
    if any(c.wait() for c in curls):
        raise RuntimeError("curl failed")
    return time.perf_counter() - begun


def measure(context):
    folder = context.folder / "sync"
    folder.mkdir()
    nodes, pods, shares = SIZES
    lists = FixedLists.of_size(nodes, pods, shares)
    try:
        reader = Reader(context, folder, lists)
        reader.seconds()  # the pages are made now, and it is known which are asked for
        paths = list(lists.asked)
        took = interleaved(min(context.rounds, 5), ours=reader.seconds, curl=lambda: curl_seconds(lists.port, paths))
    finally:
        lists.end()
    size = f"{nodes} nodes, {pods} pods, {shares} with a share; {sum(len(p) for p in lists.pages.values()) >> 20} MiB"
    yield Figure("sched.first_sync_s", "s", median(took["ours"]), PEER, median(took["curl"]), "<= 1.5 x peer + 2", why=size)
    yield Figure("sched.first_sync_rss", "MiB", median(reader.rss), None, None, "<= 500", why="at its most; " + size)
