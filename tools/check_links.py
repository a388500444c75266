#!/usr/bin/python3
"""tools/check_links.py [--root DIR]: every relative link in a Markdown file, and every page of docs/ that
sources name, leads to a file of the tree."""
import argparse
import pathlib
import re
import sys

import sources

NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    root = parser.parse_args().root.resolve()
    bad = []
    for path in sources.files(root, (".md",)):
        text = re.sub(r"```.*?```", "", (root / path).read_text(), flags=re.S)
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:|#", target):
                continue
            to = (root / path.parent / target.partition("#")[0]).resolve()
            if not to.exists() or root not in to.parents:
                bad.append(f"{path}: {target} leads nowhere")
    for path in sources.files(root, (".c", ".h", ".def", ".py", ".cmake")):
        text = (root / path).read_text(errors="replace")
        bad += [f"{path}: {page} leads nowhere" for page in sorted(set(NAMED.findall(text))) if not (root / page).exists()]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
