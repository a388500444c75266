#!/usr/bin/python3
"""tools/check_sizes.py [--root DIR]: lists C and Python files over 500 lines and functions over 100: a question to the
author (one idea, or two?), so it exits with 0. Relies on clang-format: a function's braces stand alone in the first column."""
import argparse
import ast
import pathlib
import re
import sys

import sources

FILE_LINES, FUNCTION_LINES = 500, 100


def python_functions(lines):
    """Yields (name, first line, length)."""
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def c_functions(lines):
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
    for path in sources.files(root, (".c", ".h", ".py")):
        lines = (root / path).read_text(errors="replace").splitlines()
        if len(lines) > FILE_LINES:
            print(f"{path}: {len(lines)} lines")
        for name, start, length in (python_functions if path.suffix == ".py" else c_functions)(lines):
            if length > FUNCTION_LINES:
                print(f"{path}:{start}: {name}() has {length} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
