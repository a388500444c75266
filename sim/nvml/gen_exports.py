"""gen_exports.py SYMBOLS MODELLED.def STUBS.c VERSION.map: a stub for each exported name that is not modelled, and the
linker's list of exports."""

import re
import sys

symbols_path, modelled_path, stubs_path, map_path = sys.argv[1:]
symbols = open(symbols_path).read().split()
modelled = re.findall(r"^CALL\((\w+)", open(modelled_path).read(), re.M)

names = sorted(set(symbols) | set(modelled))
with open(stubs_path, "w") as out:
    out.write("/* Made by gen_exports.py: exported, not modelled. */\nint nvml_unmodelled(void);\n")
    for name in names:
        if name not in modelled:
            out.write(f"int {name}(void);\nint {name}(void)\n{{\n\treturn nvml_unmodelled();\n}}\n")
with open(map_path, "w") as out:
    out.write("{\nglobal:\n" + "".join(f"\t{name};\n" for name in names) + "local:\n\t*;\n};\n")
