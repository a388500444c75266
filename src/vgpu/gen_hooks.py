#!/usr/bin/env python3
"""Makes hooks_gen.h, hooks_gen.c and the linker's version script from hooks.def, the symbol map and the prototypes.

usage: gen_hooks.py [--mutate] HOOKS.DEF CUDA_SYMBOLS.TXT OUT_DIR HEADER...

--mutate: each hook can be switched off by the environment (tools/mutate-hooks): the export is a function that asks, ours has
another name in the library."""
import re
import sys
from pathlib import Path

MARKS = {"account", "limit", "view", "follow", "pass"}
WHENS = {"now", "uses", "-"}
SUFFIXES = ["", "_v2", "_v3", "_v4", "_ptds", "_ptsz", "_v2_ptds", "_v2_ptsz", "_v3_ptsz"]


def read_hooks(path):
    """[(mark, when, symbol)] in the file's order."""
    hooks, seen = [], set()
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in MARKS or words[1] not in WHENS:
            sys.exit(f"{path}:{number}: want MARK WHEN SYMBOL")
        if words[2] in seen:
            sys.exit(f"{path}:{number}: {words[2]} stands here twice")
        if (words[0] == "pass") == (words[1] == "now"):
            sys.exit(f"{path}:{number}: {words[2]} is hooked and passes, or neither")
        seen.add(words[2])
        hooks.append(tuple(words))
    return hooks


def read_rows(path):
    """[(symbol, base, version, per_thread)]"""
    rows = []
    for line in Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            symbol, base, version, flags = line.split("|")
            rows.append((symbol, base, int(version), flags == "per-thread"))
    return rows


def read_prototypes(paths):
    """{name: (result, parameters, arguments)}"""
    found = {}
    for path in paths:
        text = re.sub(r"/\*.*?\*/", "", Path(path).read_text(), flags=re.S)
        for result, name, params in re.findall(r"^(CUresult|int) ((?:cu|nvml)\w+)\(([^;]*?)\);", text, re.S | re.M):
            params = " ".join(params.split())
            args = "" if params == "void" else ", ".join(re.search(r"(\w+)$", p).group(1) for p in params.split(", "))
            found[name] = (result, params, args)
    return found


def check(hooks, rows, prototypes):
    listed = {symbol for _, _, symbol in hooks if symbol.startswith("cu")}
    known = {row[0] for row in rows}
    if listed != known:
        sys.exit(f"hooks.def and the symbol map differ: {sorted(listed ^ known)}")
    for symbol, base, _, _ in rows:
        if symbol[len(base):] not in SUFFIXES:
            sys.exit(f"{symbol}: unknown suffix behind {base}")
    for _, when, symbol in hooks:
        if when != "-" and symbol not in prototypes:
            sys.exit(f"hooks.def: no prototype of {symbol} in src/abi")


class Pool:
    """Strings in one array, addressed by offset: no relocations."""

    def __init__(self):
        self.text, self.at = [], {}
        self.size = 0

    def add(self, s):
        if s not in self.at:
            self.at[s] = self.size
            self.text.append(s)
            self.size += len(s) + 1
        return self.at[s]


def mutation(name, prototypes):
    """The export, and the name that our function has in the object files instead."""
    result, params, args = prototypes[name]
    return (f'{result} {name}({params}) __asm__("hooked_{name}");\n'
            f'{result} mutable_{name}({params}) __asm__("{name}");\n',
            f"VGPU_EXPORT {result} mutable_{name}({params})\n{{\n"
            f"\treturn mutate_off(name_pool + entry_names[ENTRY_{name}]) ? REAL({name})({args}) : {name}({args});\n}}\n")


def header(entries, renamed):
    out = ["/* Made by gen_hooks.py from hooks.def. */", "#ifndef HM_VGPU_HOOKS_GEN_H", "#define HM_VGPU_HOOKS_GEN_H", "",
           '#include "abi/cuda_api.h"', '#include "abi/cuda_graph.h"', '#include "abi/cuda_v1.h"', '#include "abi/nvml.h"', "",
           "/* The driver's functions. A slot is never NULL: it starts as a stub that looks the function up. */",
           "struct vgpu_real {"]
    out += [f"\t__typeof__({name}) *{name};" for name, _ in entries]
    out += ["};", "", "enum vgpu_entry {"]
    out += [f"\tENTRY_{name}," for name, _ in entries]
    out += ["\tENTRY_COUNT", "};", "", *renamed, "#endif", ""]
    return "\n".join(out)


def stub(name, prototypes):
    result, params, args = prototypes[name]
    missing = "CUDA_ERROR_NOT_FOUND" if result == "CUresult" else "NVML_ERROR_FUNCTION_NOT_FOUND"
    return (f"static {result} first_{name}({params})\n{{\n"
            f"\treturn entry_bind(ENTRY_{name}) ? REAL({name})({args}) : {missing};\n}}\n")


def source(entries, rows, prototypes, hooked, mutations):
    pool, prefix = Pool(), "mutable_" if mutations else ""
    out = ["/* Made by gen_hooks.py from hooks.def. */", '#include "vgpu/hooks.h"', ""]
    out += [stub(name, prototypes) for name, _ in entries]
    out += ["struct vgpu_real vgpu_real = {"]
    out += [f"\t.{name} = first_{name}," for name, _ in entries]
    out += ["};", "", "/* In the order of their names. */", "const uint16_t entry_names[ENTRY_COUNT] = {"]
    out += [f"\t{pool.add(name)}, /* {name} */" for name, _ in entries]
    out += ["};", "", "/* Our functions; NULL where we only call the driver's. */",
            "void *const entry_ours[ENTRY_COUNT] = {"]
    out += [f"\t{'(void *)' + prefix + name if name in hooked else 'NULL'}," for name, _ in entries]
    out += ["};", "", "const struct proc_row proc_rows[] = {"]
    number = {name: i for i, (name, _) in enumerate(entries)}
    for symbol, base, version, per_thread in sorted(rows, key=lambda r: (r[1], r[3], r[2])):
        entry = number[symbol] if symbol in hooked else -1
        out.append(f"\t{{ {version}, {pool.add(base)}, {entry}, {SUFFIXES.index(symbol[len(base):])}, {int(per_thread)} }},")
    out += ["};", "const size_t proc_row_count = sizeof proc_rows / sizeof proc_rows[0];", "",
            "const char proc_suffixes[][10] = {" + ", ".join(f'"{s}"' for s in SUFFIXES) + "};", "",
            "const char name_pool[] ="]
    out += [f'\t"{s}\\0"' for s in pool.text]
    out += ["\t;", "", *mutations]
    if pool.size > 65535:
        sys.exit("the names need more than 16 bits")
    return "\n".join(out)


def main():
    mutate = sys.argv[1] == "--mutate"
    hooks_def, symbols, out_dir, *headers = sys.argv[2 if mutate else 1:]
    hooks, rows, prototypes = read_hooks(hooks_def), read_rows(symbols), read_prototypes(headers)
    check(hooks, rows, prototypes)
    entries = sorted((symbol, when) for _, when, symbol in hooks if when != "-")
    hooked = {symbol for symbol, when in entries if when == "now"}
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    mutations = [mutation(name, prototypes) for name in sorted(hooked)] if mutate else []
    (out / "hooks_gen.h").write_text(header(entries, [m[0] for m in mutations]))
    (out / "hooks_gen.c").write_text(source(entries, rows, prototypes, hooked, [m[1] for m in mutations]))
    exports = "".join(f"\t\t{name};\n" for name in sorted(hooked | {"dlsym", "dlvsym", "dlopen"}))
    (out / "vgpu.map").write_text("{\n\tglobal:\n" + exports + "\tlocal:\n\t\t*;\n};\n")


main()
