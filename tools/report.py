#!/usr/bin/python3
"""tools/report.py [--must-run FILE]... [--step NAME LOG]... FILE...: sums JUnit results of ctest and pytest.

Prints what was skipped, with why, what failed, with its output, and as the last line "N passed, N failed[, N skipped]".
A missing or empty file counts as a failure, and so does a skipped case of a --must-run file. Exits with 1 on a failure.
"""
import argparse
import pathlib
import sys
import xml.etree.ElementTree as ET

FIRST_LINES, LAST_LINES = 20, 40  # of a failure's output: the reason stands first, what led to it last


def cases_of(path):
    """Yields (name, "passed" | "failed" | "skipped", text)."""
    try:
        root = ET.parse(path).getroot()
    except (OSError, ET.ParseError) as why:
        yield path, "failed", f"no results: {why}"
        return
    found = False
    for case in root.iter("testcase"):
        found = True
        name = "::".join(filter(None, [case.get("classname", "").rpartition(".")[2], case.get("name")]))
        if case.get("classname") == case.get("name"):
            name = case.get("name")
        bad = [e for e in case if e.tag in ("failure", "error")]
        skip = case.find("skipped")
        output = (case.findtext("system-out") or "") + "".join((e.text or "") for e in bad)
        if bad or case.get("status") == "fail":
            yield name, "failed", "\n".join([e.get("message") or "" for e in bad] + [output])
        elif skip is not None or case.get("status") in ("notrun", "disabled"):
            why = (skip.get("message") if skip is not None else "") or ""
            if why.startswith("SKIP_RETURN_CODE"):
                why = output.strip().splitlines()[-1] if output.strip() else why
            yield name, "failed" if why in ("Unable to find executable",) else "skipped", why
        else:
            yield name, "passed", ""
    if not found:
        yield path, "failed", "no test ran"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--must-run", action="append", default=[], help="a file in which a skipped case is a failure")
    parser.add_argument("--step", action="append", default=[], nargs=2, metavar=("NAME", "LOG"),
                        help="a step without cases that failed, and what it printed")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    cases = [(name, "failed", pathlib.Path(log).read_text(encoding="utf-8", errors="replace")) for name, log in args.step]
    for path in args.files + args.must_run:
        for name, status, text in cases_of(path):
            if status == "skipped" and path in args.must_run:
                status, text = "failed", f"skipped, but it must run here: {text}"
            cases.append((name, status, text))
    for name, status, text in cases:
        if status == "skipped":
            print(f"skipped: {name}: {' '.join(text.split())}")
    for name, status, text in cases:
        if status == "failed":
            lines = text.strip().splitlines()
            print(f"FAILED: {name}")
            if len(lines) > FIRST_LINES + LAST_LINES:
                lines[FIRST_LINES:-LAST_LINES] = [f"[{len(lines) - FIRST_LINES - LAST_LINES} lines are left out]"]
            print("\n".join("    " + line for line in lines))
    count = {s: sum(1 for c in cases if c[1] == s) for s in ("passed", "failed", "skipped")}
    tail = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{tail}")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
