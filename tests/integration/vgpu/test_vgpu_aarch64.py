"""libvgpu for aarch64, under qemu, with simulated drivers of the same architecture: they and this machine's hami-simd agree,
since what they share is laid out alike on both."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[3]
ARM = REPO / "build/aarch64"
MIB = 1 << 20


def probe(node, *arguments, limit=None):
    sets = ["-E", f"LD_LIBRARY_PATH={ARM}/sim"]
    if limit is not None:
        sets += ["-E", f"LD_PRELOAD={ARM}/lib/libvgpu.so", "-E", f"CUDA_DEVICE_MEMORY_LIMIT={limit}"]
    done = subprocess.run(["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", *sets, str(ARM / "tests/vgpu-probe"),
                           *arguments], env={**node.env, "LD_LIBRARY_PATH": ""}, capture_output=True, text=True, check=False,
                          timeout=100)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.skipif(not (ARM / "lib/libvgpu.so").exists() or shutil.which("qemu-aarch64-static") is None,
                    reason="not built for aarch64: make PRESET=aarch64")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="cross-built on x86-64 alone")
def test_a_limit_holds_on_aarch64(node):
    bare, held = probe(node, "info"), probe(node, "info", limit="64m")
    assert [d["total"] for d in held["devices"]] == [64 * MIB] * len(node.cards)
    assert min(d["total"] for d in bare["devices"]) > 10000 * MIB
    # The simulated driver's first allocation reserves more address space than qemu can bear: only refusals can be seen.
    assert probe(node, "alloc", "65", limit="64m")["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert probe(node, "launch", "100000", "4", "10", limit="64m")["launches"] == 10
