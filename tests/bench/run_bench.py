#!/usr/bin/python3
"""make bench: measures what each tests/bench/bench_<area>.py knows to measure, writes build/bench.json, prints a table.

    run_bench.py [--rounds N] [--output FILE] [AREA...]

A module has measure(context) and yields figures.Figure. One that cannot measure here yields figures with `why`; one that
breaks ends the run with 1 after the others, since a figure that silently vanishes is worse than a bad one.
"""
import argparse
import dataclasses
import importlib
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
REPO = HERE.parents[1]

import figures  # noqa: E402 (the path comes first)


@dataclasses.dataclass
class Context:
    build: pathlib.Path
    folder: pathlib.Path  # a short one of this run's own, removed at the end
    rounds: int


def machine():
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, {os.uname().machine}"


def commit():
    def git(*args):
        return subprocess.run(["git", "-c", "safe.directory=*", "-C", str(REPO), *args], capture_output=True, text=True,
                              check=False).stdout.strip()
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+changes" if git("status", "--porcelain", "-uno") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("areas", nargs="*")
    args = parser.parse_args()
    if args.rounds < 5:
        parser.error("medians of fewer than 5 rounds are not worth writing down")
    build = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
    names = args.areas or sorted(p.stem.removeprefix("bench_") for p in HERE.glob("bench_*.py"))
    found, broken = [], []
    for name in names:
        print(f"bench: {name} ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="hmb-", dir="/tmp") as folder:
            try:
                module = importlib.import_module(f"bench_{name}")
                found += [f.judged() for f in module.measure(Context(build, pathlib.Path(folder), args.rounds))]
            except Exception:  # noqa: BLE001 (whatever it is, the other areas go on)
                traceback.print_exc()
                broken.append(name)
    output = args.output or build / "bench.json"
    figures.write(output, commit(), machine(), found)
    print(figures.table(found))
    print(f"bench: {len(found)} figures in {output}" + (f"; could not run: {', '.join(broken)}" if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
