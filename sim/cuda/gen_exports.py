#!/usr/bin/env python3
"""Writes exports.c from abi/cuda_symbols.txt: a weak definition of every exported function, which answers
CUDA_ERROR_NOT_SUPPORTED unless a source file of this folder defines it, and the map of cuGetProcAddress."""
import sys

HEAD = """/* Generated from cuda_symbols.txt. */
#include "sim/cuda/proc_address.h"

enum { NOT_SUPPORTED = 801 };
#define STUB(name) \\
	int name(void); \\
	__attribute__((weak, visibility("default"))) int name(void) \\
	{ \\
		return NOT_SUPPORTED; \\
	}
"""


def main(symbols, out):
    rows = [line.strip().split("|") for line in open(symbols) if line.strip()]
    rows.sort(key=lambda r: (r[1], r[3] != "default", int(r[2])))
    with open(out, "w") as f:
        f.write(HEAD)
        for exported, *_ in rows:
            f.write(f"STUB({exported})\n")
        f.write("\nconst struct proc_export proc_exports[] = {\n")
        for exported, base, version, stream in rows:
            per_thread = {"default": "false", "per-thread": "true"}[stream]
            f.write(f'\t{{ "{base}", {version}, {per_thread}, (void (*)(void)){exported} }},\n')
        f.write("};\nconst size_t proc_export_count = sizeof proc_exports / sizeof proc_exports[0];\n")


main(*sys.argv[1:])
