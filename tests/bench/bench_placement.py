#!/usr/bin/python3
"""How much of a cluster's cards the policies fill: the FGD paper's experiment, by hami-scheduler simulate.

    HAMI_TRACES=DIR bench_placement.py [--pictures DIR]     the table of docs/placement.md, for all policies

DIR holds openb_node_list_gpu_node.csv and openb_pod_list_<workload>.csv of Alibaba's cluster-trace-gpu-v2023. Ten seeds,
42 to 51; 1.3 times the cards are asked for; read when 100 % was. As part of make bench only fgd runs.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from figures import Figure  # noqa: E402 (the path comes first)

# What the paper's authors published of their simulator: mean of the seeds.
PAPER = {"default": {"Random": 86.30, "DotProd": 90.62, "Clustering": 91.65, "Packing": 91.78, "BestFit": 92.86, "FGD": 95.23},
         "gpushare100": {"Random": 78.90, "DotProd": 81.98, "Clustering": 82.22, "Packing": 82.13, "BestFit": 84.62, "FGD": 86.64},
         "gpuspec33": {"Random": 83.87, "DotProd": 79.82, "Clustering": 81.09, "Packing": 82.22, "BestFit": 80.39, "FGD": 87.84},
         "multigpu50": {"Random": 81.28, "DotProd": 94.73, "Clustering": 95.69, "Packing": 96.06, "BestFit": 95.62, "FGD": 97.09}}
GOALS = {"default": ">= 95.2", **{w: f"> {p['FGD']}" for w, p in PAPER.items() if w != "default"}}
FIRST_SEED, SEEDS = 42, 10
POLICIES = {"spread": ["--policy=spread"], "binpack": ["--policy=binpack"],
            "fgd, F alone": ["--weights=fragment=1000,step=40"], "fgd, C alone": ["--weights=copies=1000,step=36"],
            "fgd, learning": ["--mix=learned"], "fgd, CPU not known": ["--host=unknown"], "fgd": []}


def folder():
    """Of the trace, or why there is none."""
    name = os.environ.get("HAMI_TRACES")
    if not name:
        return None, "HAMI_TRACES names no folder with the trace (docs/placement.md)"
    path = pathlib.Path(name)
    if not (path / "openb_node_list_gpu_node.csv").exists():
        return None, f"HAMI_TRACES: no openb_node_list_gpu_node.csv in {path}"
    return path, None


def run(build, traces, workload, *options):
    """(percent at 100 % asked, pods tried): the mean line of simulate."""
    done = subprocess.run([str(build / "bin/hami-scheduler"), "simulate", f"--nodes={traces}/openb_node_list_gpu_node.csv",
                           f"--pods={traces}/openb_pod_list_{workload}.csv", "--load=130", "--until=100",
                           f"--seed={FIRST_SEED}", f"--seeds={SEEDS}", *options],
                          capture_output=True, text=True, check=True)
    mean = done.stdout.splitlines()[-1].split()
    if mean[0] != "mean":
        raise RuntimeError(f"no mean: {done.stdout}")
    return float(mean[7]), int(mean[1])


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    traces, why = folder()
    if traces is None:
        sys.exit(why)
    build = pathlib.Path(os.environ.get("HAMI_BUILD", HERE.parents[1] / "build"))
    print("| | " + " | ".join(PAPER) + " |\n|" + "---|" * (len(PAPER) + 1))
    for name in next(iter(PAPER.values())):
        print(f"| paper: {name} | " + " | ".join(f"{PAPER[w][name]:.2f}" for w in PAPER) + " |")
    for name, options in POLICIES.items():
        cells = []
        for workload in PAPER:
            more = [] if args.pictures is None or options else [f"--picture={args.pictures}/placement_{workload}.svg"]
            cells.append(run(build, traces, workload, *options, *more)[0])
        print(f"| {name} | " + " | ".join(f"{c:.2f}" for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
