#!/usr/bin/python3
"""tools/check_format.py [--fix] [--root DIR] [FILE...]: clang-format 14 on every C file; exits with 1 and names those that differ."""
import argparse
import pathlib
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
    bad = []
    for name in files:
        want = subprocess.run([tool, style, name], cwd=args.root, capture_output=True, check=True).stdout
        have = (args.root / name).read_bytes()
        if want != have:
            line = next((i for i, (a, b) in enumerate(zip(have.splitlines(), want.splitlines()), 1) if a != b), 0)
            bad.append(f"{name}:{line}: not as clang-format writes it; make format mends it")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
