"""Which files the checkers look at: what git tracks or would track, but for seeded faults; all below a folder where that
is no git tree."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDED = "tests/checks/bad_tree/"


def files(root=ROOT, suffixes=None, under=("",)):
    """Paths relative to root, sorted, whose name ends with one of the suffixes (all if None), below one of the folders."""
    root = pathlib.Path(root)
    git = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False) if (root / ".git").exists() else None
    if git is not None and git.returncode == 0:
        names = [n for n in git.stdout.decode().split("\0") if n]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and ".git" not in p.parts]
        names = [n for n in names if not n.startswith("build/")]
    return sorted(
        pathlib.Path(n) for n in set(names)
        if not n.startswith(SEEDED) and (root / n).is_file()
        and (suffixes is None or n.endswith(tuple(suffixes))) and n.startswith(tuple(under)))


def scripts(root=ROOT):
    """Shell scripts by their first line."""
    out = []
    for path in files(root):
        with open(pathlib.Path(root) / path, "rb") as f:
            first = f.readline(64)
        if first.startswith((b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env bash", b"# shellcheck shell=")):
            out.append(path)
    return out


def blank_comments_and_strings(text):
    """C text with comments and string and character literals blanked, line numbers kept."""
    import re
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
