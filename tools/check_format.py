#!/usr/bin/python3
"""tools/check_format.py [--fix] [--root DIR] [FILE...]: clang-format 14 on every C file; exits with 1 and names those that differ."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import sources


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if tool is None:
        sys.exit("check_format: clang-format-14 is not there: tools/setup check")
    files = args.files or [str(p) for p in sources.files(args.root, (".c", ".h"))]
    style = f"--style=file:{sources.ROOT}/.clang-format"
    if args.fix:
        return subprocess.run([tool, style, "-i"] + files, cwd=args.root, check=False).returncode
    # A few processes for all files: starting one for each costs more than the formatting.
    share = max(1, (len(files) + os.cpu_count() - 1) // os.cpu_count())
    runs = [subprocess.Popen([tool, style, "--dry-run"] + files[i:i + share], cwd=args.root, text=True, errors="replace",
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for i in range(0, len(files), share)]
    bad = {}
    for run in runs:
        for name, line in re.findall(r"^(.+?):(\d+):\d+: warning: code should be clang-formatted", run.communicate()[1], re.M):
            bad.setdefault(name, f"{name}:{line}: not as clang-format writes it; make format mends it")
        if run.returncode != 0:
            sys.exit(f"check_format: {tool} failed")
    bad = list(bad.values())
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
