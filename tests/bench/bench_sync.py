"""How long a scheduler takes until it knows the cluster, beside curl that reads the same pages, one connection for each list as
the scheduler has; and what it weighs then. Once with placements that nobody signs, once with a key, and each share signed.
FULL=1: 5,000 nodes and 150,000 pods, 40,000 of them with a share."""
import os
import subprocess
import time

from asking import Scheduler, kubeconfig_of, wait_until
from figures import Figure, interleaved, median
from fixed_lists import FixedLists, Signer

SIZES = (5000, 150000, 40000) if os.environ.get("FULL") else (1000, 15000, 4000)
PEER = "curl of the same pages"


class Reader:
    """A scheduler that reads the lists; each time another process."""

    def __init__(self, context, name, signer=None):
        self.context, self.folder, self.rss = context, context.folder / name, []
        self.folder.mkdir()
        self.lists = FixedLists.of_size(*SIZES, **({"sign": signer.sign} if signer else {}))
        self.flags = [kubeconfig_of(self.lists, self.folder)]
        if signer:
            self.flags.append(f"--signature-keys={signer.folder}")
        self.paths = []  # that the first one asked for

    def seconds(self):
        with Scheduler(self.context.build, self.folder) as it:
            begun = time.perf_counter()
            it.start(*self.flags)
            wait_until("the first sync", 300, lambda: it.ask("GET", "/readyz")[0] == 200)
            took = time.perf_counter() - begun
            self.rss.append(it.rss_kib("VmHWM") / 1024)
            self.check(it)
            self.paths = self.paths or list(self.lists.asked)
            return took

    @staticmethod
    def check(it):
        nodes, _, shares = SIZES
        known = it.metric("hami_scheduler_nodes", state="with-cards"), it.metric("hami_scheduler_holding_pods")
        if known != (nodes, shares) or it.metric("hami_scheduler_doubted_pods") != 0:
            raise RuntimeError(f"of {nodes} nodes and {shares} shares it knows {known}, or doubts some")

    def curl_seconds(self):
        return curl_seconds(self.lists.port, self.paths)


def curl_seconds(port, paths):
    begun, curls = time.perf_counter(), []
    for plural in ("/nodes", "/pods", "/resourcequotas"):
        urls = [f"http://127.0.0.1:{port}{p}" for p in paths if p.split("?")[0].endswith(plural)]
        curls.append(subprocess.Popen(["curl", "-sSf", *(w for url in urls for w in ("-o", "/dev/null", url))]))
    if any(c.wait() for c in curls):
        raise RuntimeError("curl failed")
    return time.perf_counter() - begun


def measure(context):
    unsigned, signed = Reader(context, "unsigned"), Reader(context, "signed", Signer(context.folder / "keys"))
    with unsigned.lists, signed.lists:
        for reader in (unsigned, signed):
            reader.seconds()  # what it asks for is what curl asks for
        took = interleaved(min(context.rounds, 5), ours=unsigned.seconds, curl=unsigned.curl_seconds, ours_signed=signed.seconds,
                           curl_signed=signed.curl_seconds)
    nodes, pods, shares = SIZES
    size = f"{nodes} nodes, {pods} pods, {shares} with a share; {sum(len(p) for p in unsigned.lists.pages.values()) >> 20} MiB"
    for suffix, reader in (("", unsigned), ("_signed", signed)):
        yield Figure(f"sched.first_sync{suffix}_s", "s", median(took[f"ours{suffix}"]), PEER, median(took[f"curl{suffix}"]),
                     "<= 1.5 x peer + 2", why=size)
        yield Figure(f"sched.first_sync{suffix}_rss", "MiB", median(reader.rss), None, None, "<= 500", why="at its most; " + size)
