#!/usr/bin/python3
"""tools/check_headers.py [--root DIR] [--build DIR]: each header of src/ and sim/ compiles alone."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import sources

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    parser.add_argument("--build", default=sources.ROOT / "build", type=pathlib.Path)
    args = parser.parse_args()
    generated = {str(p.parent) for p in args.build.glob("src/**/*.h")} | {str(p.parent) for p in args.build.glob("sim/**/*.h")}
    paths = [f"-I{args.root}/src", f"-I{args.root}", f"-I{args.root}/tests"] + [f"-I{p}" for p in sorted(generated)]

    def compile_alone(path):
        name = str(path).removeprefix("src/")
        run = subprocess.run(["gcc"] + FLAGS + paths + ["-"], input=f'#include "{name}"\n', text=True, capture_output=True,
                             check=False)
        return f"{path}: does not compile alone\n{run.stderr}" if run.returncode else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [b for b in pool.map(compile_alone, sources.files(args.root, (".h",), ("src/", "sim/", "tests/harness/"))) if b]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
