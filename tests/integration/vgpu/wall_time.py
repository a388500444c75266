"""Children that launch kernels in containers, by the wall clock, and what they get of card 0. On the virtual clock: shares.py."""
import json
import sys
import time

from steps import release

RUN = """
import json, sys
from launch import *
lengths, sync, seconds, call = json.loads(sys.argv[1])
kernel = Kernel()
print("up", flush=True)
sys.stdin.readline()
count = kernel.run(lengths, sync, seconds, call)
print(json.dumps(count), flush=True)
sys.stdin.readline()
"""


def start(container, lengths, sync, seconds, call="cuLaunchKernel"):
    """One that is ready to begin: kernels of these lengths (ns) in turn, waiting for the card after each `sync` of them."""
    child = container.start([sys.executable, "-c", RUN, json.dumps([lengths, sync, seconds, call])])
    assert child.stdout.readline() == "up\n", child.communicate()
    return child


def finish(*children):
    for child in children:
        out, err = child.communicate("\n", timeout=60)
        assert child.returncode == 0, out + err


def busy_ns(node, pid):
    return {p["pid"]: p["busy_ns"] for p in node.status()["cards"][0]["processes"]}[pid]


def shares_meanwhile(node, children, settle, seconds):
    """Percent of the card that each child's process gets in so many seconds, after those to settle."""
    time.sleep(settle)
    from_s, before = time.monotonic(), [busy_ns(node, child.pid) for child in children]
    time.sleep(seconds)
    after, to_s = [busy_ns(node, child.pid) for child in children], time.monotonic()
    return [(b - a) / 1e7 / (to_s - from_s) for a, b in zip(before, after)]


def shares(node, children, warm=1.0, seconds=2.0):
    """The same, from where they begin to their end."""
    release(*children)
    got = shares_meanwhile(node, children, warm, seconds)
    finish(*children)
    return got
