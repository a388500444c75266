#!/usr/bin/python3
"""tools/check_sizes.py [--root DIR]: lists files over 500 lines and functions over 100: a question to the author (one idea,
or two?), so it exits with 0. Relies on clang-format: a function's braces stand alone in the first column."""
import argparse
import pathlib
import re
import sys

import sources

FILE_LINES, FUNCTION_LINES = 500, 100


def functions(lines):
    """Yields (name, first line, length)."""
    start = None
    for n, line in enumerate(lines, 1):
        if line == "{":
            start = n
        elif line.startswith("}") and start is not None:
            head = " ".join(lines[max(0, start - 6):start - 1])
            names = re.findall(r"(\w+)\s*\(", head.rpartition(";")[2].rpartition("}")[2])
            yield (names[0] if names else "?"), start, n - start + 1
            start = None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    root = parser.parse_args().root
    for path in sources.files(root, (".c", ".h")):
        lines = (root / path).read_text(errors="replace").splitlines()
        if len(lines) > FILE_LINES:
            print(f"{path}: {len(lines)} lines")
        for name, start, length in functions(lines):
            if length > FUNCTION_LINES:
                print(f"{path}:{start}: {name}() has {length} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
