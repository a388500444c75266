#!/usr/bin/env python3
"""Compares our declarations of the CUDA driver and NVML (src/abi) with NVIDIA's own headers.

usage: check_abi.py [--abi DIR] [--cc CC] [INCLUDE_DIR...]

Each INCLUDE_DIR holds cuda.h, cudaTypedefs.h and nvml.h of one version; none given: those of tools/fetch-cuda-headers. Both
sides are compiled and what the compiler made of them is read from the debug information: each function's type, each
struct's size and members, each constant. What one version lacks must be in another. The symbol map (cuda_symbols.txt) is
compared with cudaTypedefs.h, which names each entry point with its version. Exit 1 with one line for each fault; 77 where
NVIDIA's headers cannot be fetched, but 1 where HAMI_CI is set."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Constants that bear another name at NVIDIA's. None: ours alone.
NAMES = {
    "CU_DEVICE_ATTRIBUTE_MAX": None, # a bound
    "NVML_NO_INSTANCE": None,
    "NVML_ARCH_TURING": "NVML_DEVICE_ARCH_TURING",
    "NVML_ARCH_AMPERE": "NVML_DEVICE_ARCH_AMPERE",
    "NVML_ARCH_ADA": "NVML_DEVICE_ARCH_ADA",
    "NVML_ARCH_HOPPER": "NVML_DEVICE_ARCH_HOPPER",
    "NVML_ARCH_BLACKWELL": "NVML_DEVICE_ARCH_BLACKWELL",
    "NVML_CLOCK_ID_APP_TARGET": "NVML_CLOCK_ID_APP_CLOCK_TARGET",
    "NVML_CLOCK_ID_APP_DEFAULT": "NVML_CLOCK_ID_APP_CLOCK_DEFAULT",
    "NVML_CLOCK_ID_MAX": "NVML_CLOCK_ID_CUSTOMER_BOOST_MAX",
    "NVML_EVENT_SINGLE_BIT_ECC": "nvmlEventTypeSingleBitEccError",
    "NVML_EVENT_DOUBLE_BIT_ECC": "nvmlEventTypeDoubleBitEccError",
    "NVML_EVENT_XID_CRITICAL": "nvmlEventTypeXidCriticalError",
    "NVML_GPU_INSTANCE_PROFILE_V2": "nvmlGpuInstanceProfileInfo_v2",
    "NVML_MAX_NVLINKS": "NVML_NVLINK_MAX_LINKS",
    "NVML_MEMORY_ERROR_CORRECTED": "NVML_MEMORY_ERROR_TYPE_CORRECTED",
    "NVML_MEMORY_ERROR_UNCORRECTED": "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
    "NVML_MEMORY_V2": "nvmlMemory_v2",
    "NVML_NVLINK_DEVICE_GPU": "NVML_NVLINK_DEVICE_TYPE_GPU",
    "NVML_NVLINK_DEVICE_IBMNPU": "NVML_NVLINK_DEVICE_TYPE_IBMNPU",
    "NVML_NVLINK_DEVICE_SWITCH": "NVML_NVLINK_DEVICE_TYPE_SWITCH",
    "NVML_NVLINK_DEVICE_UNKNOWN": "NVML_NVLINK_DEVICE_TYPE_UNKNOWN",
    "NVML_PROCESSES_UTILIZATION_INFO_V1": "nvmlProcessesUtilizationInfo_v1",
    "NVML_PROCESS_DETAIL_LIST_V1": "nvmlProcessDetailList_v1",
    "NVML_UUID_BYTES": "NVML_DEVICE_UUID_BUFFER_SIZE",
    "NVML_NAME_BYTES": "NVML_DEVICE_NAME_BUFFER_SIZE",
    "NVML_NAME_V2_BYTES": "NVML_DEVICE_NAME_V2_BUFFER_SIZE",
    "NVML_VERSION_BYTES": "NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE",
    "NVML_SERIAL_BYTES": "NVML_DEVICE_SERIAL_BUFFER_SIZE",
    "NVML_PCI_BUS_ID_BYTES": "NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE",
    "NVML_PCI_BUS_ID_V2_BYTES": "NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE",
}
# Where versions differ we follow 13.0. These are the other versions' values, and the structs to which fields were added
# inside room that was always there.
OTHER_VALUES = {
    ("NVML_MAX_NVLINKS", 36),                # 13; ours is for cards up to Hopper, as in 12
    ("NVML_GPU_INSTANCE_PROFILE_COUNT", 17), # 12
    ("NVML_COMPUTE_INSTANCE_PROFILE_COUNT", 8), # 12
    ("NVML_FI_MAX", 274),                    # 12
}
GROWS = {"sm"} # of CUdevResource: one field in 12.9, three in 13.0, five in 13.5
# Members that stand for whatever lies there: nothing that we look into.
OPAQUE = re.compile(r"_?(opaque|reserved|internal|oversize)")


class Die:
    """One entry of the debug information."""

    def __init__(self, tag):
        self.tag, self.children, self.ref = tag, [], None
        self.name, self.size, self.offset, self.value, self.count, self.declared = None, None, 0, None, None, False


def read_dwarf(path):
    """The entries of the object's one unit."""
    text = subprocess.run(["readelf", "-W", "--debug-dump=info", path], check=True, capture_output=True, text=True).stdout
    dies, stack, die, refs = {}, [], None, []
    for line in text.splitlines():
        head = re.match(r" <([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)", line)
        if head:
            depth, at, tag = int(head[1], 16), int(head[2], 16), head[3]
            die = dies[at] = Die(tag)
            del stack[depth:]
            if stack:
                stack[-1].children.append(die)
            stack.append(die)
            continue
        attribute = re.match(r"\s+<[0-9a-f]+>\s+DW_AT_(\w+)\s*: ?(.*)", line)
        if not attribute or die is None:
            continue
        key, value = attribute[1], attribute[2].strip()
        if key == "name":
            die.name = re.sub(r"^(\((strp|string)\) )?(\((indirect string, )?offset: 0x[0-9a-f]+\): )?", "", value)
        elif key == "type":
            refs.append((die, int(re.search(r"<(?:0x)?([0-9a-f]+)>", value)[1], 16)))
        elif key in ("byte_size", "data_member_location", "const_value", "upper_bound"):
            number = int(re.sub(r"^\(\w+\) ", "", value).split()[0], 0)
            if key == "byte_size":
                die.size = number
            elif key == "data_member_location":
                die.offset = number
            elif key == "const_value":
                die.value = number
            else:
                die.count = number + 1
        elif key == "declaration":
            die.declared = True
    for die, at in refs:
        die.ref = dies[at]
    return list(dies.values())


def peel(die):
    """Without names for it."""
    while die is not None and die.tag == "typedef":
        die = die.ref
    return die


def members(die, at=0):
    """[(name, offset, type)]; members of an unnamed struct or union are its holder's, as in C."""
    out = []
    for c in die.children:
        if c.tag == "member" and c.name is None:
            out += members(peel(c.ref), at + c.offset)
        elif c.tag == "member":
            out.append((c.name, at + c.offset, c.ref))
    return out


def parameters(die):
    return [c for c in die.children if c.tag == "formal_parameter"]


def length(die):
    total = 1
    for c in die.children:
        if c.tag == "subrange_type":
            total *= c.count if c.count is not None else 0
    return total


class Comparison:
    """Ours against one version of theirs, structure by structure."""

    def __init__(self):
        self.done, self.handles, self.seen = {}, {}, set()

    def differ(self, ours, theirs):
        """Why the two types are not the same; "": they are."""
        ours, theirs = peel(ours), peel(theirs)
        if ours is None or theirs is None:
            return "" if ours is theirs else "void on one side"
        key = (id(ours), id(theirs))
        if key not in self.done:
            self.done[key] = "" # what refers to itself is the same until shown otherwise
            self.done[key] = self._differ(ours, theirs)
        return self.done[key]

    def _differ(self, ours, theirs):
        kinds = (ours.tag, theirs.tag)
        # Enumerations are ints on our side, so that values that we do not know pass through.
        if theirs.tag == "enumeration_type" and ours.tag in ("base_type", "enumeration_type"):
            return "" if (ours.size, theirs.size) == (4, 4) else f"{ours.size} bytes, not {theirs.size}"
        if kinds[0] != kinds[1]:
            return f"{describe(ours)}, not {describe(theirs)}"
        if ours.tag == "base_type":
            return "" if ours.name == theirs.name else f"{ours.name}, not {theirs.name}"
        if ours.tag in ("pointer_type", "const_type", "volatile_type"):
            return self.differ(ours.ref, theirs.ref)
        if ours.tag == "array_type":
            if length(ours) != length(theirs):
                return f"[{length(ours)}], not [{length(theirs)}]"
            return self.differ(ours.ref, theirs.ref)
        if ours.tag == "subroutine_type":
            return self.function(ours, theirs)
        if ours.tag in ("structure_type", "union_type"):
            return self.structure(ours, theirs)
        return f"{ours.tag} is not known here"

    def function(self, ours, theirs):
        mine, other = parameters(ours), parameters(theirs)
        if len(mine) != len(other):
            return f"{len(mine)} parameters, not {len(other)}"
        for number, (a, b) in enumerate(zip(mine, other), 1):
            why = self.differ(a.ref, b.ref)
            if why:
                return f"parameter {number}: {why}"
        why = self.differ(ours.ref, theirs.ref)
        return f"result: {why}" if why else ""

    def structure(self, ours, theirs, grows=False):
        if ours.declared: # a handle: the same two always belong together
            pair = (ours.name, theirs.name)
            known = self.handles.setdefault(("ours", pair[0]), pair), self.handles.setdefault(("theirs", pair[1]), pair)
            return "" if known == (pair, pair) else f"struct {pair[0]}, not {pair[1]}"
        if theirs.declared:
            return f"struct {ours.name} is complete, theirs is not"
        self.seen.add(id(ours))
        name = ours.name or "unnamed"
        if ours.size != theirs.size and not grows:
            return f"{name} has {ours.size} bytes, not {theirs.size}"
        there = members(theirs)
        for member in members(ours)[:len(there) if grows else None]:
            why = "" if OPAQUE.match(member[0]) else self.member(member, there, by_offset=name.startswith("nvml_"))
            if why:
                return f"{name}.{member[0]}: {why}"
        return ""

    def member(self, member, theirs, by_offset):
        """By name; NVML's, which we name our own way, else by offset."""
        name, offset, kind = member
        named = [t for t in theirs if t[0] == name]
        if named and offset not in [t[1] for t in named]:
            return f"at {offset}, not {named[0][1]}"
        if theirs and all(OPAQUE.match(t[0]) for t in theirs): # older headers reserve all of it
            return ""
        whys = [self.grown(kind, t[2]) if name in GROWS else self.differ(kind, t[2])
                for t in named or [t for t in theirs if by_offset and t[1] == offset]]
        return min(whys, key=len) if whys else "not there"

    def grown(self, ours, theirs):
        return self.structure(peel(ours), peel(theirs), grows=True)


def describe(die):
    return die.tag.removesuffix("_type") + (f" {die.name}" if die.name else "")


class Side:
    """One set of headers, compiled."""

    def __init__(self, cc, prefix, include, headers, defines, work):
        self.cc, self.work, self.prefix = cc, work, prefix
        self.lead = "".join(f"#define {d}\n" for d in defines) + "".join(f"#include <{h}>\n" for h in headers)
        self.flags = ["-std=gnu17", "-w", *[f"-I{i}" for i in include]]
        text = self.preprocess("-E", "-P")
        self.functions = set(re.findall(r"\b((?:cu[A-Z]|nvml[A-Z])\w+)\s*\(", text))
        macros = re.findall(r"^#define (\w+) +(\S.*)", self.preprocess("-E", "-dM"), re.M)
        self.macros = {name for name, _ in macros if name.startswith(("CU", "NVML", "nvml"))}

    def preprocess(self, *flags):
        return subprocess.run([self.cc, *self.flags, *flags, "-x", "c", "-"], input=self.lead, check=True,
                              capture_output=True, text=True).stdout

    def compile(self, functions):
        """Sets self.types {function: type}, self.named {typedef or tag: type}, self.numbers {enumerator: value}."""
        source = Path(self.work, f"{self.prefix}.c")
        source.write_text(self.lead + "".join(f"__typeof__({f}) *hm_type_{f};\n" for f in sorted(functions)))
        out = source.with_suffix(".o")
        subprocess.run([self.cc, *self.flags, "-c", "-g", "-gdwarf-4", "-gstrict-dwarf", "-fno-eliminate-unused-debug-types",
                        "-o", out, source], check=True)
        dies = read_dwarf(out)
        self.types = {d.name.removeprefix("hm_type_"): peel(d.ref).ref for d in dies
                      if d.tag == "variable" and (d.name or "").startswith("hm_type_")}
        self.named = {d.name: d for d in dies if d.name and d.tag in ("typedef", "structure_type", "union_type")}
        self.numbers = {d.name: d.value for d in dies if d.tag == "enumerator"}
        self.structs = [d for d in dies if d.tag in ("structure_type", "union_type") and not d.declared]

    def values(self, names):
        """{macro: value} of those that are whole numbers."""
        lines = "".join(f'\tprintf("%s %lld\\n", "{n}", (long long)({n}));\n' for n in sorted(names))
        source, program = Path(self.work, f"{self.prefix}_values.c"), Path(self.work, f"{self.prefix}_values")
        source.write_text(f"{self.lead}#include <stdio.h>\nint main(void)\n{{\n{lines}\treturn 0;\n}}\n")
        subprocess.run([self.cc, *self.flags, "-o", program, source], check=True)
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def compare_functions(ours, theirs, comparison):
    for name in sorted(ours.functions & theirs.functions):
        why = comparison.differ(ours.types[name], theirs.types[name])
        if why:
            yield f"{name}: {why}"


def compare_structs(ours, theirs, comparison):
    """What no prototype leads to, by name."""
    for name, die in sorted(ours.named.items()):
        mine = peel(die)
        if not name.startswith(("CU", "nvml")) or mine is None or mine.tag not in ("structure_type", "union_type"):
            continue
        if id(mine) not in comparison.seen and not mine.declared and name in theirs.named:
            why = comparison.differ(mine, theirs.named[name])
            if why:
                yield f"{name}: {why}"


def compare_constants(ours, theirs, missing):
    wanted = {name: NAMES.get(name, name) for name in ours.constants}
    wanted = {mine: name for mine, name in wanted.items() if name is not None}
    macros = theirs.values({name for name in wanted.values() if name in theirs.macros and name not in theirs.numbers})
    for mine, name in sorted(wanted.items()):
        value = theirs.numbers.get(name, macros.get(name))
        if value is None:
            missing.add(mine)
        elif value != ours.constants[mine] and (mine, value) not in OTHER_VALUES:
            yield f"{mine} is {ours.constants[mine]}, not {value}"


def compare_symbols(rows, ours, theirs, comparison, version):
    """Each exported symbol's name in cudaTypedefs.h: base, version and stream class; its type is our prototype's."""
    known = set()
    for symbol, base, since, flags in rows:
        suffix = {"default": [""], "per-thread": ["_ptds", "_ptsz"]}[flags]
        names = [f"PFN_{base}_v{since}{s}" for s in suffix]
        found = [n for n in names if n in theirs.named]
        known.update(names)
        if symbol in theirs.functions and not found:
            yield f"cuda_symbols.txt: {symbol}: no {names[-1]}"
        elif found and symbol in ours.types:
            why = comparison.differ(ours.types[symbol], peel(theirs.named[found[0]]).ref)
            if why:
                yield f"{symbol} is not of the type {found[0]}: {why}"
    for name in sorted(theirs.named):
        row = re.match(r"PFN_(cu\w+)_v(\d+)(_pt[ds][sz])?$", name)
        if row and name not in known and int(row[2]) <= version:
            yield f"cuda_symbols.txt: nothing for {name}"


def read_rows(path):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [line.split("|") for line in lines]


def open_ours(cc, abi, work):
    headers = sorted(f"abi/{p.name}" for p in abi.glob("*.h"))
    side = Side(cc, "ours", [abi.parent], headers, [], work)
    text = "".join(p.read_text() for p in abi.glob("*.h"))
    side.macros = {m for m in side.macros if re.search(rf"#define {m}\s", text)}
    side.compile(side.functions)
    side.constants = {n: v for n, v in side.numbers.items() if n.startswith(("CU", "NVML"))} | side.values(side.macros)
    return side


def compare(ours, include, rows, opts, work, missing):
    defines = ["__CUDA_API_VERSION_INTERNAL", "NVML_NO_UNVERSIONED_FUNC_DEFS"]
    headers = ["cuda.h", "cudaTypedefs.h", "nvml.h"]
    theirs = Side(opts.cc, "theirs", [include], headers, defines, work)
    theirs.compile(ours.functions & theirs.functions)
    version = theirs.values({"CUDA_VERSION"})["CUDA_VERSION"]
    comparison, lacks = Comparison(), set()
    faults = [*compare_functions(ours, theirs, comparison), *compare_structs(ours, theirs, comparison),
              *compare_constants(ours, theirs, lacks),
              *compare_symbols(rows, ours, theirs, comparison, min(version, opts.table_version))]
    lacks |= ours.functions - theirs.functions
    lacks |= {f"struct {s.name}" for s in ours.structs if s.name and id(s) not in comparison.seen
              and re.match("CU|nvml", s.name)}
    missing.append(lacks)
    print(f"CUDA {version // 1000}.{version % 1000 // 10}: {len(ours.functions & theirs.functions)} functions, "
          f"{len(comparison.seen)} structs, {len(ours.constants)} constants, {len(rows)} symbols compared; "
          f"not there: {', '.join(sorted(lacks)) or 'nothing'}")
    return [f"CUDA {version // 1000}.{version % 1000 // 10}: {fault}" for fault in faults]


def fetch():
    done = subprocess.run([ROOT / "tools/fetch-cuda-headers"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print("NVIDIA's headers cannot be fetched (PyPI): our declarations were not compared with them")
        sys.exit(1 if os.environ.get("HAMI_CI") else 77)
    return [Path(line) for line in done.stdout.splitlines()]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("includes", nargs="*", type=Path)
    args.add_argument("--abi", type=Path, default=ROOT / "src/abi")
    args.add_argument("--cc", default="cc")
    args.add_argument("--table-version", type=int, default=13000, help="the newest entry points that the symbol map lists")
    opts = args.parse_args()
    opts.includes = opts.includes or fetch()
    missing, faults = [], []
    with tempfile.TemporaryDirectory() as work:
        ours = open_ours(opts.cc, opts.abi.resolve(), work)
        for include in opts.includes:
            faults += compare(ours, include, read_rows(opts.abi / "cuda_symbols.txt"), opts, work, missing)
    faults += [f"{name}: no version of NVIDIA's headers has it" for name in sorted(set.intersection(*missing))]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
