"""Every path of tests/cuda, on a node that has every feature: without libvgpu each must find its promise broken (or it proves
nothing), with libvgpu none may."""
import os
import subprocess
import sys

import pytest
from conftest import BUILD, REPO, running

sys.path.insert(0, str(REPO / "tests/cuda"))
import paths  # noqa: E402

LIMIT, CORES = 512 * paths.MIB, 20
PROGRAM = BUILD / "tests/cuda-path"

def all_paths():
    if not PROGRAM.exists():
        return {}
    return paths.names(BUILD, {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim")})


def cases():
    return [pytest.param(name, ends, marks=[pytest.mark.xfail(strict=True, reason=paths.NOT_YET[name])] if name in paths.NOT_YET else [])
            for name, ends in all_paths().items()]


@pytest.fixture(scope="module")
def node():
    with running(REPO / "tests/cuda/node.yaml") as n:
        yield n


def held_by_file(container, name):
    c = container(LIMIT, cores=CORES, lines=["policy=force"])
    return paths.run(c.command([PROGRAM, name], paths.environment(LIMIT, CORES)))


def run_plainly(node, name, extra):
    return paths.run([PROGRAM, name], {**node.env, **extra})


def test_there_are_programs():
    """pytest would pass over an empty list in silence."""
    assert len(all_paths()) > 80
    assert set(paths.NOT_YET) <= set(all_paths())


@pytest.mark.parametrize("name, ends", [(name, ends) for name, ends in all_paths().items()])
def test_without_libvgpu_the_promise_is_broken(node, name, ends):
    """Where a machine is slow, a launch may seem held by itself: it has three tries."""
    for _ in range(3):
        status, said = run_plainly(node, name, paths.environment(LIMIT, CORES, bare=True))
        if paths.has_teeth(ends, status):
            break
    else:
        pytest.fail(f"{name} ends with {status}, it should find that it {ends}: {said}")
    if status == paths.NOT_AVAILABLE:
        pytest.skip(said)


@pytest.mark.parametrize("name, ends", cases())
def test_with_a_limit_file(container, name, ends):
    status, said = held_by_file(container, name)
    if status == paths.NOT_AVAILABLE:
        pytest.skip(said)
    assert status == paths.PASSED, said


def by_environment(name):
    """The ways of a lookup and of a launch are tried with a limit file; here one of each."""
    return not name.startswith(("lookup", "launch")) or name in ("lookup-address", "launch-kernel")


@pytest.mark.parametrize("name, ends", [c for c in cases() if by_environment(c.values[0])])
def test_with_the_environment_of_hami(node, short_tmp, name, ends):
    box = paths.box(BUILD, short_tmp, LIMIT, CORES)
    status, said = run_plainly(node, name, {**paths.environment(LIMIT, CORES), **box})
    if status == paths.NOT_AVAILABLE:
        pytest.skip(said)
    assert status == paths.PASSED, said


def test_oversubscription(node, short_tmp):
    """The one path that needs a limit above the card's memory."""
    limit = node.status()["cards"][0]["total_bytes"] * 5 // 4
    box, asked = paths.box(BUILD, short_tmp, limit), {"CUDA_OVERSUBSCRIBE": "true"}
    status, said = run_plainly(node, "oversubscribe", {**paths.environment(limit, 0, bare=True), **asked})
    assert status == paths.BROKEN and "sixteenths" in said
    status, said = run_plainly(node, "oversubscribe", {**paths.environment(limit, 0), **box})
    assert status == paths.NOT_AVAILABLE
    status, said = run_plainly(node, "oversubscribe", {**paths.environment(limit, 0), **box, **asked})
    assert status == paths.PASSED, said


def test_a_program_that_is_not_there():
    done = subprocess.run([PROGRAM, "no-such-path"], env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim")}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == paths.CANNOT and "no-such-path" in done.stderr
