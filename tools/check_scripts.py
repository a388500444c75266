#!/usr/bin/python3
"""tools/check_scripts.py [--root DIR] [FILE...]: shellcheck on every shell script."""
import argparse
import pathlib
import shutil
import subprocess
import sys

import sources


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    if shutil.which("shellcheck") is None:
        sys.exit("check_scripts: shellcheck is not there: tools/setup check")
    files = args.files or [str(p) for p in sources.scripts(args.root)]
    return subprocess.run(["shellcheck", "-x", "-S", "warning", "-e", "SC1090,SC1091", "-f", "gcc"] + files,
                          cwd=args.root, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
