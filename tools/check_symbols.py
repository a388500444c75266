#!/usr/bin/env python3
"""What libvgpu.so shows to the programs it is loaded into, and what it needs of them.

usage: check_symbols.py LIBVGPU.SO [--hooks HOOKS.DEF]

Exports: exactly the entries that hooks.def hooks now, dlsym, dlvsym and dlopen. Needed: libc.so.6 alone, no symbol newer than glibc
2.17, none of the functions a guest may not call, no constructor, no thread-local storage. Exit 1 with one line for each
fault."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST = (2, 17)
# A guest allocates nothing, prints nothing, ends nothing, leaves signals, masks and environment alone, and holds no
# point where a thread can be cancelled (open, close, read, ...: libvgpu makes those system calls itself).
BANNED = re.compile(
    r"^(malloc|calloc|realloc|free|reallocarray|posix_memalign|aligned_alloc|strdup|strndup|asprintf"
    r"|f?printf|v?s?n?printf|puts|fputs|putchar|fwrite|fopen|fdopen|fclose|fflush|perror|std(out|err|in)|__.*printf_chk"
    r"|exit|_exit|_Exit|abort|atexit|__cxa_atexit|__cxa_finalize|quick_exit|__assert_fail|__stack_chk_fail"
    r"|signal|sigaction|sigprocmask|sigaltstack|raise|kill|alarm|setitimer|umask|chdir|fchdir|setenv|putenv|unsetenv|clearenv"
    r"|system|popen|fork|vfork|execv\w*|posix_spawn\w*|pthread_\w+|thrd_\w+|sem_\w+|strerror\w*|setlocale|dl(open|close|sym|vsym|error)"
    r"|open|openat|close|read|write|pread|pwrite|fcntl|nanosleep|usleep|sleep|poll|select|wait\w*|fallocate|fsync|__tls_get_addr)$")


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def hooked(path):
    words = [line.split("#")[0].split() for line in Path(path).read_text().splitlines()]
    return {w[2] for w in words if len(w) == 3 and w[1] == "now"} | {"dlsym", "dlvsym", "dlopen"}


def symbols(library):
    """(exported names, [(needed name, its version)])"""
    exported, needed = set(), []
    for line in run("readelf", "-W", "--dyn-syms", library).splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit():
            continue
        name, _, version = words[7].partition("@")
        if words[6] == "UND":
            needed.append((name, version.strip("@")))
        elif words[4] in ("GLOBAL", "WEAK"):
            exported.add(name)
    return exported, needed


def faults(library, hooks):
    wanted = hooked(hooks)
    exported, needed = symbols(library)
    for name in sorted(wanted - exported):
        yield f"{name} is hooked but not exported"
    for name in sorted(exported - wanted):
        yield f"{name} is exported but not hooked"
    for name, version in sorted(needed):
        found = re.match(r"GLIBC_(\d+)\.(\d+)", version)
        if found and tuple(map(int, found.groups())) > NEWEST:
            yield f"{name} needs {version}, newer than GLIBC_{NEWEST[0]}.{NEWEST[1]}"
        if BANNED.match(name):
            yield f"{name} may not be called"
    dynamic = run("readelf", "-W", "-d", library)
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    for name in sorted(set(libraries) - {"libc.so.6"}):
        yield f"needs {name}"
    if "libc.so.6" not in libraries:
        yield "does not need libc.so.6"
    for tag in ("INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "TEXTREL"):
        if f"({tag})" in dynamic:
            yield f"has {tag}: code that runs without being called"
    if re.search(r"^\s*TLS\s", run("readelf", "-W", "-l", library), re.M):
        yield "has thread-local storage"


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("library")
    args.add_argument("--hooks", default=ROOT / "src/vgpu/hooks.def")
    opts = args.parse_args()
    found = list(faults(opts.library, opts.hooks))
    for fault in found:
        print(f"{opts.library}: {fault}")
    sys.exit(1 if found else 0)


main()
