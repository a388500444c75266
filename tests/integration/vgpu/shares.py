"""Shares of a card on the simulation's virtual clock: real programs under the real libvgpu, faster than real time. What a
process got is read from the simulation's own books."""
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess

from steps import release

BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", pathlib.Path(__file__).resolve().parents[3] / "build"))
MS = 1000000
STEP_MS, WARM_MS, WINDOW_MS = 100, 1000, 2000


@dataclasses.dataclass(frozen=True)
class Load:
    """A program: launches kernels of these lengths (ns) in turn, waiting for the card after each `sync` of them."""
    lengths: tuple
    sync: int
    grid: int = 1
    kind: str = "cuLaunchKernel"


CARDS = ("sm20", "sm188")
MIXED = (MS // 20, MS, 20 * MS)
SHARES = range(10, 100, 10)
WORKLOADS = {
    "10ms_sync10": Load((10 * MS,), 10, 132), "1ms_sync10": Load((MS,), 10, 132), "0.1ms_sync100": Load((MS // 10,), 100, 100000),
    "1ms_sync20": Load((MS,), 20, 1000), "1ms_sync1": Load((MS,), 1, 4096), "0.2ms_sync50": Load((MS // 5,), 50, 20000),
    "mixed": Load(MIXED, 7), "graph": Load((MS // 2,), 4, kind="cuGraphLaunch"), "thread": Load((MS,), 20, kind="cuLaunchKernel_ptsz"),
    "never_sync": Load((5 * MS,), 0),
}


TOGETHER = {  # name: shares, one load each
    "30_70": ((30, 70), (Load((MS,), 20), Load((MS,), 20))),
    "30_70_uneven": ((30, 70), (Load((10 * MS,), 10), Load((MS // 5,), 50))),
    "30_70_graph": ((30, 70), (Load((MS // 2,), 4, kind="cuGraphLaunch"), Load((MS,), 11))),
    "30_70_mixed": ((30, 70), (Load(MIXED, 7), Load(MIXED, 11))),
    "10_20_70": ((10, 20, 70), (Load((MS,), 7), Load((5 * MS,), 5), Load((MS,), 11))),
    "30_rest": ((30, 100), (Load((MS,), 20), Load((MS,), 20))),
}


def wanted(cores):
    """Whoever has no limit gets the rest."""
    return [100 - sum(c for c in cores if c != 100) if c == 100 else c for c in cores]


@dataclasses.dataclass
class Got:
    """Of one container: percent of the card by the mean and in the lowest and highest window after the first second."""
    mean: float
    low: float
    high: float
    shares: list  # of each window of WINDOW_MS, moved on by STEP_MS
    busy: list    # what it has used after each step, ns

    def worst(self, percent):
        """Points by which the window that is furthest off is."""
        return max(percent - self.low, self.high - percent)

    def curve(self):
        """[(seconds, percent of the last WINDOW_MS, or of the time since the start)] after each step."""
        steps, busy = WINDOW_MS // STEP_MS, [0, *self.busy]
        return [(i * STEP_MS / 1000, (busy[i] - busy[max(i - steps, 0)]) * 100 / (min(i, steps) * STEP_MS * MS))
                for i in range(1, len(busy))]


def start(container, argv):
    """A program on the virtual clock, ready to begin."""
    preload = f"{BUILD}/lib/libvgpu.so:{BUILD}/tests/fake/helpers/libvirtual_time.so"
    child = container.start(argv, preload=False, env={"LD_PRELOAD": preload})
    said = child.stdout.readline()
    assert said == "up\n", child.communicate()
    return child


def watch(node, groups, seconds, processes, card=0):
    return subprocess.Popen([BUILD / "tests/share-watch", str(STEP_MS), str(seconds * 1000 // STEP_MS), str(processes), str(card),
                             *groups], env=node.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def windows(busy):
    """busy: what a container has used after each step."""
    first, steps = WARM_MS // STEP_MS - 1, WINDOW_MS // STEP_MS
    shares = [(busy[i + steps] - busy[i]) * 100 / (WINDOW_MS * MS) for i in range(first, len(busy) - steps)]
    mean = (busy[-1] - busy[first]) * 100 / ((len(busy) - 1 - first) * STEP_MS * MS)
    return Got(mean, min(shares), max(shares), shares, busy)


def measure(node, work, seconds=6, samples=True):
    """work: [(container, [Load, ...]), ...]. Returns Got of each container."""
    with contextlib.ExitStack() as stack:
        processes = sum(len(loads) for _, loads in work)
        children, groups = [], []
        for container, loads in work:
            mine = [start(container, [BUILD / "tests/gpu-load", load.kind, load.sync, load.grid, ",".join(map(str, load.lengths)),
                                      seconds + 2, processes]) for load in loads]
            for child in mine:
                stack.callback(child.wait)
                stack.callback(child.kill)
            children += mine
            region = str(container.region) if samples else "-"
            groups.append(f"{region}:{','.join(str(child.pid) for child in mine)}")
        watcher = watch(node, groups, seconds, processes)
        stack.callback(watcher.kill)
        release(*children)
        out, err = watcher.communicate(timeout=300)
        assert watcher.returncode == 0, err
        return [windows(list(column)) for column in zip(*json.loads(out))]
