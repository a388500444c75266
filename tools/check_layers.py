#!/usr/bin/python3
"""tools/check_layers.py [--root DIR]: who may include whom, and that no product code knows of the simulation.

A file includes "folder/header.h" (src/) or "sim/folder/header.h"; only the folders of its row, its own, and generated
files without a folder (*.pb-c.h, *_gen.h) are allowed. The rooms of src/agent and of src/sched include each other one
way. Exits with 1 and names each offender.
"""
import argparse
import pathlib
import re
import sys

import sources

SRC = {
    "contract": "", "abi": "", "core": "",
    "base": "core",
    "io": "core base",
    "model": "contract core base",
    "region": "contract core",
    "rpc": "core base io",
    "kubelet": "contract core base io rpc",
    "cdi": "contract core base io",
    "kube": "contract core base io",
    "gpu": "contract abi core base model",
    "hami": "contract core base io model",
    "vgpu": "contract abi core region",
    "hamivgpu": "contract core base model region gpu",
    "agent": "contract abi core base io model region rpc kubelet cdi kube gpu hami",
    "sched": "contract core base io model kube hami",
    "smi": "contract core base io model region hamivgpu",
}
# The programs' rooms, from the ground up: each may include those before it. What is in none is above all.
ROOMS = {
    "agent": "options claims cluster cards processes container reload serve hami metrics".split(),
    "sched": "options serve extender view webhook bind lead verbs simulate metrics".split(),
}
# sim/: the libraries that stand in for the driver, and the programs. What runs in other people's processes needs little.
SIM_LIBRARIES = ("lib", "cuda", "nvml")
SIM_LIBRARY_MAY = "contract abi core"
SIM_PROGRAM_MAY = "contract abi core base io rpc kubelet cdi"

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# `hami-scheduler simulate` is the product's own.
KNOWS_SIMULATION = re.compile(r"hami[-_]?sim|simulat(?!e(?![a-z]))|simd\b|simctl|simkubelet", re.I)


def allowed(folder, inc):
    """May a file of `folder` ("core", "sim/lib") include from the folder `inc`?"""
    if folder == inc:
        return True
    if folder.startswith("sim/"):
        library = folder[4:] in SIM_LIBRARIES
        if inc.startswith("sim/"):
            return not library or inc[4:] in SIM_LIBRARIES
        return inc in (SIM_LIBRARY_MAY if library else SIM_PROGRAM_MAY).split()
    return inc in SRC[folder].split()


def folder_of(path):
    """The layer of src/core/err.c is "core", of sim/lib/x.c "sim/lib", of src/kubelet/proto/x.h "kubelet"."""
    parts = path.parts
    if parts[0] == "sim":
        return "sim/" + (parts[1] if len(parts) > 2 else "")
    return parts[1]


def room_of(name):
    """How high the room of "agent/cards/xid.h" lies; what is in no room is above all."""
    parts = name.split("/")
    rooms = ROOMS.get(parts[0], [])
    return rooms.index(parts[1]) if len(parts) > 2 and parts[1] in rooms else len(rooms)


def check(root):
    bad = []
    for path in sources.files(root, ("",), ("src/", "sim/")):
        text = (root / path).read_text(errors="replace")
        folder = folder_of(path)
        if path.parts[0] == "src":
            if len(path.parts) > 2 and folder not in SRC:
                bad.append(f"{path}: {folder}/ is no folder of the house; add it to SRC in tools/check_layers.py")
                continue
            for n, line in enumerate(text.splitlines(), 1):
                if KNOWS_SIMULATION.search(line):
                    bad.append(f"{path}:{n}: product code knows of the simulation: {line.strip()}")
        for inc in INCLUDE.findall(text):
            if "/" not in inc:
                if not inc.endswith((".pb-c.h", "_gen.h", ".inc")) and not (root / path.parent / inc).exists():
                    bad.append(f'{path}: "{inc}" is named without its folder')
                continue
            if inc.startswith("."):
                bad.append(f'{path}: "{inc}" goes through the file tree; name the folder')
                continue
            target = "/".join(inc.split("/")[:2]) if inc.startswith("sim/") else inc.split("/")[0]
            if not allowed(folder, target):
                bad.append(f"{path}: {folder}/ may not include {target}/")
            elif folder == target and folder in ROOMS and room_of(inc) > room_of("/".join(path.parts[1:])):
                bad.append(f"{path}: {path.parts[2]}/ may not include {inc}, which lies above it")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    bad = check(parser.parse_args().root)
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
