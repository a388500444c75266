#!/usr/bin/python3
"""How much of a cluster's cards the policies fill: the FGD paper's experiment, by hami-scheduler simulate.

    HAMI_TRACES=DIR bench_placement.py [--write] [--jobs N]

Prints the table of docs/placement.md: the paper's policies, ours, and what nobody can exceed (placement_bound.py). With
--write it goes into that page, and the pictures into docs/pictures.

DIR (default: tests/bench/traces) holds openb_node_list_gpu_node.csv and openb_pod_list_<workload>.csv of Alibaba's
cluster-trace-gpu-v2023. Ten seeds, 42 to 51, of fgd's variants the first three; 1.3 times the cards are asked for; read
when 100 % was. As part of make bench only fgd runs, beside the bound.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import placement_bound  # noqa: E402 (the path comes first)
from figures import Figure  # noqa: E402

# What the paper's authors published of their simulator: mean of the seeds.
PAPER = {"default": {"Random": 86.30, "DotProd": 90.62, "Clustering": 91.65, "Packing": 91.78, "BestFit": 92.86, "FGD": 95.23},
         "gpushare100": {"Random": 78.90, "DotProd": 81.98, "Clustering": 82.22, "Packing": 82.13, "BestFit": 84.62, "FGD": 86.64},
         "gpuspec33": {"Random": 83.87, "DotProd": 79.82, "Clustering": 81.09, "Packing": 82.22, "BestFit": 80.39, "FGD": 87.84},
         "multigpu50": {"Random": 81.28, "DotProd": 94.73, "Clustering": 95.69, "Packing": 96.06, "BestFit": 95.62, "FGD": 97.09}}
GOALS = {workload: f"> {paper['FGD']}" for workload, paper in PAPER.items()}
FIRST_SEED, SEEDS, FEW = 42, 10, 3
# Cards by numa are none of them: the trace knows no NUMA nodes, nor links for topology-aware, which is then spread.
POLICIES = {"spread": ["--policy=spread"], "binpack": ["--policy=binpack"],
            "binpack, cards spread (the default)": ["--policy=binpack", "--card-policy=spread"],
            "binpack, cards topology-aware": ["--policy=binpack", "--card-policy=topology-aware"],
            "binpack, cards mutex": ["--policy=binpack", "--card-policy=mutex"], "**fgd**": []}
# Beside it, with the first few of the seeds: they are slow. Rounded as fgd is.
VARIANTS = {"fgd": [], "F alone": ["--weights=fragment=1000,step=100"], "C alone": ["--weights=copies=1000,step=100"],
            "learning from nothing": ["--mix=learned"], "CPU not known": ["--host=unknown"]}
PAGE = HERE.parents[1] / "docs/placement.md"


def folder():
    """Of the trace, or why there is none."""
    path = pathlib.Path(os.environ.get("HAMI_TRACES") or HERE / "traces")
    if not (path / "openb_node_list_gpu_node.csv").exists():
        return None, f"no openb_node_list_gpu_node.csv in {path}: HAMI_TRACES names the trace's folder (docs/placement.md)"
    return path, None


def nodes_of(traces):
    return traces / "openb_node_list_gpu_node.csv"


def pods_of(traces, workload):
    return traces / f"openb_pod_list_{workload}.csv"


def simulate(build, traces, workload, *options):
    done = subprocess.run([str(build / "bin/hami-scheduler"), "simulate", f"--nodes={nodes_of(traces)}",
                           f"--pods={pods_of(traces, workload)}", "--load=130", *options],
                          capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def run(build, traces, workload, *options, first=FIRST_SEED, seeds=SEEDS):
    """(percent at 100 % asked, pods tried): the last line of simulate, the mean where there are several seeds."""
    lines = simulate(build, traces, workload, "--until=100", f"--seed={first}", f"--seeds={seeds}", *options)
    last = lines[-1].split()
    if last[0] != ("mean" if seeds > 1 else str(first)):
        raise RuntimeError(f"no line for all seeds: {lines}")
    return float(last[7]), int(last[1])


def bound(traces, workload):
    return placement_bound.percent(nodes_of(traces), pods_of(traces, workload))


def measure(context):
    traces, why = folder()
    for workload, goal in GOALS.items():
        value = None
        if traces is not None:
            begin = time.monotonic()
            value, pods = run(context.build, traces, workload)
            spent = time.monotonic() - begin
        yield Figure(f"sched.allocation_{workload}", "% of cards", value, goal=goal, why=why,
                     recorded={"FGD paper": PAPER[workload]["FGD"]})
        if workload == "default":
            each = None if traces is None else 1e6 * spent / pods / SEEDS
            yield Figure("sched.fgd_1213_nodes", "us a pod", each, why=why)
        most = None if traces is None else bound(traces, workload)
        yield Figure(f"sched.allocation_bound_{workload}", "% of cards", most, why=why)


def line(name, values):
    return f"| {name} | " + " | ".join(f"{v:.2f}" for v in values) + " |"


def table(build, traces, jobs):
    """Line by line; what is asked for next runs meanwhile."""
    def means(options, seeds):
        return [pool.submit(run, build, traces, workload, *options, seeds=seeds) for workload in PAPER]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        rows = {name: means(options, SEEDS) for name, options in POLICIES.items()}
        rows |= {f"{FEW} seeds: {name}": means(options, FEW) for name, options in VARIANTS.items()}
        bounds = [pool.submit(bound, traces, w) for w in PAPER]
        yield "| | " + " | ".join(PAPER) + " |"
        yield "|" + "---|" * (len(PAPER) + 1)
        for name in next(iter(PAPER.values())):
            yield line(f"paper: {name}", [PAPER[w][name] for w in PAPER])
        for name, cells in rows.items():
            yield line(name, [c.result()[0] for c in cells])
        yield line("upper bound", [b.result() for b in bounds])


def draw(build, traces, workload):
    simulate(build, traces, workload, f"--seed={FIRST_SEED}", f"--picture={PAGE.parent}/pictures/placement_{workload}.svg")


def write(lines):
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"(?m)^\| \| default \|.*\n(\|.*\n)+", lambda _: "\n".join(lines) + "\n", text, count=1), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    traces, why = folder()
    if traces is None:
        sys.exit(why)
    build = pathlib.Path(os.environ.get("HAMI_BUILD", HERE.parents[1] / "build"))
    lines = []
    for row in table(build, traces, args.jobs):
        print(row, flush=True)
        lines.append(row)
    if args.write:
        write(lines)
        for workload in PAPER:
            draw(build, traces, workload)


if __name__ == "__main__":
    main()
