#!/usr/bin/python3
"""tools/check_links.py [--root DIR]: every relative link in a Markdown file leads to a file of the tree."""
import argparse
import pathlib
import re
import sys

import sources

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
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
