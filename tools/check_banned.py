#!/usr/bin/python3
"""tools/check_banned.py [--root DIR]: no call of a function that the house does without; exits with 1 and names them."""
import argparse
import pathlib
import re
import sys

import sources

BANNED = {
    "strcpy": "str_add, piece_copy or memcpy with a bound", "strcat": "str_add", "strncat": "str_add",
    "stpcpy": "str_add", "sprintf": "snprintf or hm_fmt", "vsprintf": "vsnprintf or hm_vfmt",
    "strtok": "cur_until", "strtok_r": "cur_until",
    "atoi": "num_u64", "atol": "num_u64", "atoll": "num_u64", "atof": "num_u64",
    "strtol": "num_u64", "strtoul": "num_u64", "strtoll": "num_u64", "strtoull": "num_u64",
    "alloca": "an array of fixed size", "gets": "file_read", "system": "posix_spawn",
    "localtime": "the wall clock in UTC", "localtime_r": "the wall clock in UTC",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=sources.ROOT, type=pathlib.Path)
    root = parser.parse_args().root
    bad = []
    for path in sources.files(root, (".c", ".h", ".def"), ("src/", "sim/", "tests/", "kmod/")):
        text = sources.blank_comments_and_strings((root / path).read_text(errors="replace"))
        for n, line in enumerate(text.splitlines(), 1):
            for name in CALL.findall(line):
                bad.append(f"{path}:{n}: {name}() is banned: use {BANNED[name]}")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
