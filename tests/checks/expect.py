#!/usr/bin/python3
"""expect.py --exit CODE|nonzero [--says TEXT]... [--silent-on TEXT]... -- COMMAND...: the test of a checker. The command
must exit so and its output must hold each text; used to see that a seeded fault is reported by name."""
import argparse
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exit", required=True)
    parser.add_argument("--says", action="append", default=[])
    parser.add_argument("--silent-on", action="append", default=[])
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    run = subprocess.run(args.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         check=False)
    bad = []
    if (run.returncode == 0) if args.exit == "nonzero" else (run.returncode != int(args.exit)):
        bad.append(f"exit status {run.returncode}, expected {args.exit}")
    bad += [f"does not say: {t}" for t in args.says if t not in run.stdout]
    bad += [f"must not say: {t}" for t in args.silent_on if t in run.stdout]
    if bad:
        print(run.stdout)
        print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
