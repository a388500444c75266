#!/usr/bin/python3
"""Searches the weights of the policy fgd: those of the greatest least margin over the FGD paper's figures.

    HAMI_TRACES=DIR tune_placement.py [--jobs N] [--minutes N]

A setting's margin on a workload is the mean of seeds 1 to 10 of what it allocated, less the paper's, once with the
typical pods given and once learning them from nothing; the least one of the eight counts, to a hundredth of a percent,
and among equal ones their sum. The judge's seeds, 42 to 51 (bench_placement.py), are not looked at.

From the weights that fgd.c has, each but F's is made larger and smaller in turn by a part (F's would only scale all);
what is better is kept. When nothing is, the part is halved, down to LAST_PART. A setting is dropped at the first
margin that is below the best's least: it cannot win any more, whatever the others give. So only the settings that come
near have all eight figures; a dropped one costs a tenth.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench_placement  # noqa: E402 (the path comes first)

SEEDS = range(1, 11)
# The one where the paper's FGD is hardest to beat first, then what is quick.
LEARNED = "--mix=learned"
CASES = {"multigpu50, learned": ("multigpu50", LEARNED), "multigpu50": ("multigpu50",), "gpuspec33": ("gpuspec33",),
         "gpushare100": ("gpushare100",), "default": ("default",), "gpuspec33, learned": ("gpuspec33", LEARNED),
         "gpushare100, learned": ("gpushare100", LEARNED), "default, learned": ("default", LEARNED)}
TUNED = ("copies", "balance", "empty", "step")
FIRST_PART, LAST_PART = 0.4, 0.1


def present():
    """The weights that are built in."""
    text = (HERE.parents[1] / "src/model/placement/fgd.c").read_text(encoding="utf-8")
    return {name: int(re.search(rf"\.{name} = (-?\d+),", text)[1]) for name in ("fragment", *TUNED, "blind_step")}


def option(weights):
    return "--weights=" + ",".join(f"{name.replace('_', '-')}={value}" for name, value in weights.items())


class Search:
    def __init__(self, build, traces, jobs, minutes):
        self.build, self.traces = build, traces
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.end = time.monotonic() + 60 * minutes
        self.best, self.best_worth, self.tried = None, None, {}

    def mean(self, workload, *options):
        rows = [self.pool.submit(bench_placement.run, self.build, self.traces, workload, *options, first=seed, seeds=1)
                for seed in SEEDS]
        return statistics.mean(row.result()[0] for row in rows)

    def margins(self, weights):
        """By case; fewer where it cannot win."""
        out = {}
        for case, (workload, *options) in CASES.items():
            percent = self.mean(workload, option(weights), *options)
            out[case] = round(percent - bench_placement.PAPER[workload]["FGD"], 2)
            if self.best_worth is not None and out[case] < self.best_worth[0]:
                break
        return out

    def judge(self, weights):
        """True: it is the best so far."""
        key = tuple(weights.values())
        if key in self.tried or time.monotonic() > self.end:
            return False
        margins = self.tried[key] = self.margins(weights)
        whole = len(margins) == len(CASES)
        worth = (min(margins.values()), round(sum(margins.values()), 2))
        won = whole and (self.best_worth is None or worth > self.best_worth)
        cells = [*key, *(f"{margins[w]:+.2f}" if w in margins else "-" for w in CASES), f"{worth[0]:+.2f}" if whole else "-"]
        print("| " + " | ".join(map(str, cells)) + (" | best |" if won else " | |"), flush=True)
        if won:
            self.best, self.best_worth = weights, worth
        return won

    def around(self, part):
        """Each weight larger and smaller; True: one of them was better."""
        won = False
        for name in TUNED:
            for factor in (1 + part, 1 / (1 + part)):
                at = {**self.best, name: round(self.best[name] * factor)}
                if self.judge(at):
                    won = True
                    break
        return won

    def run(self):
        start = present()
        print("| " + " | ".join([*start, *CASES]) + " | least | |\n|" + "---|" * (len(start) + len(CASES) + 2))
        self.judge(start)
        part = FIRST_PART
        while part >= LAST_PART and time.monotonic() < self.end:
            if not self.around(part):
                part /= 2
        whole = sum(len(m) == len(CASES) for m in self.tried.values())
        stopped = "" if time.monotonic() < self.end else ", stopped by --minutes"
        print(f"\n{len(self.tried)} settings, {whole} of them in all eight cases{stopped}")
        print("those of fgd.c stay" if self.best == start else "the best, for fgd.c:", option(self.best))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=600, help="no new setting after so many")
    args = parser.parse_args()
    traces, why = bench_placement.folder()
    if traces is None:
        sys.exit(why)
    build = pathlib.Path(os.environ.get("HAMI_BUILD", HERE.parents[1] / "build"))
    Search(build, traces, args.jobs, args.minutes).run()


if __name__ == "__main__":
    main()
