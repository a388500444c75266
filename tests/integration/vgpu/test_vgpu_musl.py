"""musl (Alpine): its loader reads no ld.so.preload, so that its programs meet libvgpu only where their own environment says
LD_PRELOAD. They run as before, and are held as far as there is a driver for them."""
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20

pytestmark = pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="no musl-gcc (tools/setup guests)")


@pytest.fixture
def program(short_tmp):
    source = HERE / "musl_program.c"
    subprocess.run(["musl-gcc", "-o", short_tmp / "program", source], check=True)
    subprocess.run(["musl-gcc", "-shared", "-fPIC", "-DDRIVER", "-Wl,-soname,libcuda.so.1", "-o", short_tmp / "libcuda.so.1", source],
                   check=True)
    return short_tmp / "program", short_tmp / "libcuda.so.1"


def run(c, program, library, preload, env=None):
    child = c.start([program, library], preload=preload, env=env)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, "")
    return out


def test_a_program_without_cuda_is_left_alone(container, program):
    c = container(64 * MIB)
    bare = run(c, program[0], "/no/such/driver", False)
    assert "strlen: " in bare and "nothing" in bare
    assert run(c, program[0], "/no/such/driver", True) == bare
    assert c.snapshot()["attached"] == 0


def test_a_driver_built_for_musl_is_hooked(container, program):
    """Its UUID cannot be had, so that nothing may be allocated."""
    c = container(64 * MIB)
    bare, held = run(c, *program, False), run(c, *program, True)
    assert bare.splitlines()[0] == "in the library: libcuda.so.1" and bare.splitlines()[-1] == "80 MiB: 0"
    assert held.splitlines()[0] == "in the library: libvgpu.so" and held.splitlines()[-1] == "80 MiB: 2"
    assert held.splitlines()[1:-1] == bare.splitlines()[1:-1]
