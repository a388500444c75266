"""tools/gpu-check on a simulated node: it passes with libvgpu, and says what is wrong without."""
import os
import re
import subprocess

from node.base import PLAIN, REPO


def gpu_check(*words, **env):
    return subprocess.run([str(REPO / "tools/gpu-check"), f"--build={PLAIN}", *words], capture_output=True, text=True, timeout=200,
                          check=False, env={**os.environ, **env})


def test_it_passes_on_a_simulated_node():
    done = gpu_check("--sim", str(REPO / "sim/nodes/t4x2.yaml"), "--only=pool")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all passed" in done.stdout and "failed" not in done.stdout
    assert re.search(r"^passed +pool-trim$", done.stdout, re.M)
    assert re.search(r"^passed +without libvgpu the promises are broken, (\d+) of \1 tried$", done.stdout, re.M)
    assert re.search(r"^not available +cudart: needs a real driver$", done.stdout, re.M)


def test_a_library_that_holds_nothing_is_found_out(tmp_path):
    """The build, but for a libvgpu.so that is some other library."""
    for name in ("bin", "sim", "tests"):
        (tmp_path / name).symlink_to(PLAIN / name)
    (tmp_path / "lib").mkdir()
    other = next((PLAIN / "sim").glob("libnvidia-ml.so.1"))
    (tmp_path / "lib/libvgpu.so").symlink_to(other)
    done = subprocess.run([str(REPO / "tools/gpu-check"), f"--build={tmp_path}", "--sim", str(REPO / "sim/nodes/t4x2.yaml"), "--only=alloc"],
                          capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1
    for text in ("cuDeviceTotalMem is the limit", "an allocation stops at the limit", "two processes share one limit", "alloc"):
        assert re.search(f"^failed +{text}: ", done.stdout, re.M), text


def test_a_check_that_breaks_stops_no_other(tmp_path):
    """The probe cannot fill the card."""
    for name in ("bin", "sim", "lib"):
        (tmp_path / name).symlink_to(PLAIN / name)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/cuda-path").symlink_to(PLAIN / "tests/cuda-path")
    probe = tmp_path / "tests/vgpu-probe"
    probe.write_text(f'#!/bin/sh\n[ "$1" != fill ] || exit 9\nexec {PLAIN}/tests/vgpu-probe "$@"\n')
    probe.chmod(0o755)
    done = gpu_check(f"--build={tmp_path}", "--sim", str(REPO / "sim/nodes/t4x2.yaml"), "--only=alloc-pitch")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^failed +limit: .*exit 9", done.stdout, re.M) and re.search(r"^passed +oversubscription$", done.stdout, re.M)
    assert "1 failed in" in done.stdout


def test_without_a_driver_it_says_so():
    """On a machine with a real driver the check itself runs, and must pass."""
    done = gpu_check(LD_LIBRARY_PATH="")
    assert done.returncode in (0, 2), done.stdout
    if done.returncode == 2:
        assert "libcuda.so.1 cannot be loaded" in done.stderr or "libnvidia-ml.so.1" in done.stderr
