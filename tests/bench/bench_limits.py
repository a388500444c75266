"""What share of a card containers get, on the simulation's virtual clock: the window of 2 s after the first second that
is furthest off, of all shares and workloads; and pictures of it, in bench/ beside bench.json."""
import os
import pathlib
import subprocess
import sys

import plot
from figures import Figure

HERE = pathlib.Path(__file__).resolve().parent
LONG = (100, 200, 400)  # ms
LONG_SECONDS = 42


class Bed:
    """A simulated card on a virtual clock, and containers on it."""

    def __init__(self, folder, card, conftest):
        folder.mkdir()
        self.folder, self.conftest, self.count = folder, conftest, 0
        self.node = conftest.Node(folder, f"{card}.yaml", "--clock=virtual")

    def container(self, cores):
        self.count += 1
        made = self.conftest.Container(self.node, self.folder / f"c{self.count}", 4 << 30, cores=cores, lines=["policy=force"])
        made.make_region(4 << 30)
        return made

    def measure(self, shares, cores, loads, **options):
        return shares.measure(self.node, [(self.container(c), load) for c, load in zip(cores, loads)], **options)


def alone(bed, shares, card, folder):
    curves, worst, name_of_worst = [], 0, ""
    for name, load in shares.WORKLOADS.items():
        for cores in shares.SHARES:
            got, = bed.measure(shares, [cores], [[load]])
            if got.worst(cores) > worst:
                worst, name_of_worst = got.worst(cores), f"{name} at {cores} %"
            if name == "10ms_sync10":
                curves.append((f"{cores} %", got.curve()))
    plot.write(folder / f"share_alone_{card}.svg", f"one container, kernels of 10 ms, {card}", curves)
    yield Figure(f"vgpu.share_worst_window_{card}", "points", worst, goal="<= 3", why=name_of_worst)


def together(bed, shares, card, folder):
    for name, (cores, loads) in shares.TOGETHER.items():
        got = bed.measure(shares, cores, [[load] for load in loads], seconds=10)
        want = shares.wanted(cores)
        plot.write(folder / f"share_{name}_{card}.svg", f"containers of {', '.join(map(str, cores))} %, {card}",
                   [(f"{percent} %", g.curve()) for percent, g in zip(want, got)])
        yield Figure(f"vgpu.share_{name}_worst_window_{card}", "points", max(g.worst(p) for g, p in zip(got, want)), goal="<= 3")
        yield Figure(f"vgpu.share_{name}_busy_{card}", "%", sum(g.mean for g in got), goal=">= 95")


def two_processes(bed, shares, card):
    worst = 0
    for samples in (True, False):
        for cores in shares.SHARES:
            got, = bed.measure(shares, [cores], [[shares.WORKLOADS["1ms_sync20"], shares.WORKLOADS["10ms_sync10"]]], samples=samples)
            worst = max(worst, got.worst(cores))
    yield Figure(f"vgpu.share_two_processes_worst_window_{card}", "points", worst, goal="<= 3")


def long_kernels(bed, shares, card, folder):
    """What one kernel takes lies in a window or does not: only the mean is judged."""
    curves = []
    for ms in LONG:
        got, = bed.measure(shares, [30], [[shares.Load((ms * shares.MS,), 1)]], seconds=LONG_SECONDS)
        curves.append((f"{ms} ms", got.curve()))
        yield Figure(f"vgpu.share_30_of_{ms}ms_mean_off_{card}", "points", abs(got.mean - 30), goal="<= 3")
        yield Figure(f"vgpu.share_30_of_{ms}ms_worst_window_{card}", "points", got.worst(30), why="what is possible: docs/limits.md")
    plot.write(folder / f"share_long_{card}.svg", f"30 %, one kernel at a time, {card}", curves)


def measure(context):
    os.environ["HAMI_BUILD"] = str(context.build)
    sys.path.insert(0, str(HERE.parent / "integration/vgpu"))
    import conftest  # noqa: E402 pylint: disable=import-outside-toplevel (they read HAMI_BUILD)
    import shares  # noqa: E402 pylint: disable=import-outside-toplevel
    folder = context.build / "bench"
    folder.mkdir(exist_ok=True)
    for card in shares.CARDS:
        try:
            bed = Bed(context.folder / card, card, conftest)
        except (OSError, AssertionError, subprocess.CalledProcessError) as e:
            yield Figure(f"vgpu.share_worst_window_{card}", "points", goal="<= 3", why=f"no simulated node here: {e}")
            continue
        try:
            yield from alone(bed, shares, card, folder)
            yield from two_processes(bed, shares, card)
            yield from together(bed, shares, card, folder)
            yield from long_kernels(bed, shares, card, folder)
        finally:
            bed.node.down()
