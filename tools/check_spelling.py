#!/usr/bin/python3
"""tools/check_spelling.py [--root DIR]: codespell on the documents, the sources and the scripts."""
import argparse
import pathlib
import shutil
import subprocess
import sys

import sources

# Words of ours that a dictionary takes for a slip of the pen.
OURS = "nnumber,ser,nd,fo,hist,ths,te,ot,statics,inout,ue,parm,creat,crate,ro,sav,everytime,claus,aks"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    root = parser.parse_args().root
    if shutil.which("codespell") is None:
        sys.exit("check_spelling: codespell is not there: tools/setup check")
    files = sources.files(root, (".md", ".c", ".h", ".py", ".sh", ".cmake", ".yaml", ".proto"))
    files = [p for p in files if "corpus" not in p.parts] + [p for p in sources.scripts(root) if p.suffix != ".sh"]
    return subprocess.run(["codespell", "-q", "3", "-L", OURS] + [str(p) for p in files], cwd=root, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
