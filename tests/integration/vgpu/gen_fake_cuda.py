#!/usr/bin/env python3
"""Makes the C source of a libcuda.so.1 that exports every name of the symbol map and does nothing: its functions only
have addresses. usage: gen_fake_cuda.py CUDA_SYMBOLS.TXT KIND OUT.C

KIND full: as the map says. old: lacks what came after 11.2 (an old driver). inner: cuGetProcAddress answers with functions
that are not the exported ones. newer: knows two entries more, of version 14000."""
import sys
from pathlib import Path

rows = [line.split("|") for line in Path(sys.argv[1]).read_text().splitlines() if line and not line.startswith("#")]
rows = [(symbol, base, int(version), flags == "per-thread") for symbol, base, version, flags in rows]
kind = sys.argv[2]
if kind == "old":
    rows = [row for row in rows if row[2] <= 11020]
if kind == "newer":
    rows += [("cuMemAlloc_v3", "cuMemAlloc", 14000, False), ("cuMemTeleport", "cuMemTeleport", 14000, False)]
lookups = {"cuGetProcAddress", "cuGetProcAddress_v2"}
# Without optimisation of equal functions: each has an address and a number of its own.
out = ["#include <stddef.h>", "#include <string.h>", ""]
for number, (symbol, *_) in enumerate(rows, 1000):
    if symbol not in lookups:
        out.append(f"int {symbol}(void);\nint {symbol}(void)\n{{\n\treturn {number};\n}}")
        out.append(f"int inner_{symbol}(void);\n__attribute__((visibility(\"hidden\"))) int inner_{symbol}(void)\n{{\n\treturn -{number};\n}}")
    else:
        out.append(f"int {symbol}();")
prefix = "inner_" if kind == "inner" else ""
out += ["static const struct row { const char *base; int version, per_thread; void *address; } rows[] = {"]
for symbol, base, version, per_thread in rows:
    name = symbol if symbol in lookups else prefix + symbol
    out.append(f'\t{{ "{base}", {version}, {int(per_thread)}, (void *){name} }},')
out += ["""};

static int find(const char *base, void **out, int version, unsigned long long flags, int *status)
{
	const struct row *best = NULL;
	int known = 0, want = 0;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		want |= (flags & 2) != 0 && rows[i].per_thread && strcmp(rows[i].base, base) == 0;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];

		if (strcmp(r->base, base) != 0)
			continue;
		known = 1;
		if (r->version <= version && r->per_thread == want && (best == NULL || r->version > best->version))
			best = r;
	}
	*out = best != NULL ? best->address : NULL;
	if (status != NULL)
		*status = best != NULL ? 0 : known ? 2 : 1;
	return best != NULL || base[0] == '\\0' ? 0 : 500;
}

int cuGetProcAddress(const char *base, void **out, int version, unsigned long long flags)
{
	return find(base, out, version, flags, NULL);
}
"""]
if any(row[0] == "cuGetProcAddress_v2" for row in rows):
    out += ["""int cuGetProcAddress_v2(const char *base, void **out, int version, unsigned long long flags, int *status)
{
	return find(base, out, version, flags, status);
}
"""]
Path(sys.argv[3]).write_text("\n".join(out))
