"""The simulated libcuda.so.1 against tables: what it exports, what cuGetProcAddress answers, that no call crashes.
The expected answers are computed here from the symbol map and from the list of what cudart 13 asks for."""
import os
import pathlib
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
ROWS = [line.split("|") for line in (REPO / "src/abi/cuda_symbols.txt").read_text().split()]
NOT_SUPPORTED = 801
INVALID_VALUE = 1
NOT_INITIALIZED = 3


def variants(base, per_thread):
    return {int(version): name for name, b, version, stream in ROWS
            if b == base and (stream == "per-thread") == per_thread}


def expected(base, version, flags):
    """(exported name or None, status): 1 the name is unknown, 2 every variant is newer."""
    default, per_thread = variants(base, False), variants(base, True)
    if not default and not per_thread:
        return None, 1
    chosen = per_thread if flags == 2 and per_thread else default if flags != 2 or default else per_thread
    fitting = [v for v in chosen if v <= version]
    return (chosen[max(fitting)], 0) if fitting else (None, 2)


@pytest.fixture
def lookup(build):
    program = build / "tests/cuda-lookup"

    def run(lines, *args, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "HAMI_SIM_DIR")}
        done = subprocess.run([program, *args], input="".join(line + "\n" for line in lines), text=True,
                              capture_output=True, timeout=60,
                              env={**clean, "LD_LIBRARY_PATH": str(build / "sim"), **env})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_exports_exactly_the_map(build):
    out = subprocess.run(["nm", "-D", "--defined-only", build / "sim/libcuda.so.1"], text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    assert sorted(line.split()[2] for line in out.splitlines()) == sorted(row[0] for row in ROWS)
    assert len(ROWS) == 637


def test_soname_and_symbolic(build):
    out = subprocess.run(["readelf", "-d", build / "sim/libcuda.so.1"], text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    assert "[libcuda.so.1]" in out
    assert "SYMBOLIC" in out
    assert (build / "sim/libcuda.so").exists()


def test_every_name_version_and_flag(lookup):
    asked, want = [], []
    bases = sorted({row[1] for row in ROWS}) + ["", "cuGLInit", "cuMemAlloc_v2", "cuda", "~"]
    for base in bases:
        versions = {int(row[2]) for row in ROWS if row[1] == base} | {0, 13000}
        for version in sorted(versions | {v - 1 for v in versions if v} | {v + 1 for v in versions if v < 13000}):
            for flags in (0, 1, 2):
                asked.append(f"{base},{version},{flags}")
                name, status = expected(base, version, flags)
                want.append(f"{name or 'NULL'} {status} 0")
    got = lookup(asked)
    assert len(got) == len(asked) > 4000
    wrong = [(a, w, g) for a, w, g in zip(asked, want, got) if w != g]
    assert not wrong, wrong[:10]


def test_what_cudart_13_asks(lookup):
    rows = [line.split("|") for line in (REPO / "tests/harness/cudart13_requests.txt").read_text().splitlines()
            if not line.startswith("#")]
    assert len(rows) == 440
    got = lookup([asked for asked, _ in rows])
    wrong = [(row, g) for row, g in zip(rows, got) if row[1] != g.split()[0]]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("line", ["cuInit,2000,3", "cuInit,2000,4", "cuInit,13010,0"])
def test_bad_requests(lookup, line):
    assert lookup([line])[0].endswith(f" {INVALID_VALUE}")


def test_no_call_crashes_before_init(lookup):
    names = [row[0] for row in ROWS]
    codes = dict(zip(names, map(int, lookup(names, "--call"))))
    assert len(codes) == 637
    assert codes["cuGetExportTable"] == NOT_SUPPORTED
    assert codes["cuMemAlloc_v2"] == NOT_INITIALIZED
    # 100 is cuInit without a node.
    assert set(codes.values()) <= {0, INVALID_VALUE, NOT_INITIALIZED, 100, NOT_SUPPORTED}
    assert codes["cuInit"] == 100


def test_the_documented_list_of_what_is_not_modelled(build):
    out = subprocess.run(["nm", "-D", "--defined-only", build / "sim/libcuda.so.1"], text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    weak = {line.split()[2] for line in out.splitlines() if line.split()[1] == "W"}
    page = (REPO / "docs/simulation-cuda.md").read_text()
    listed = set(page.split("## Not modelled")[1].replace(",", " ").split())
    assert {name for name in listed if name.startswith("cu")} == weak
