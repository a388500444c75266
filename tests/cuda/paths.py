"""Runs build/tests/cuda-path: the programs of tests/cuda, for pytest and for tools/gpu-check."""
import subprocess

PASSED, BROKEN, CANNOT, NOT_AVAILABLE = 0, 1, 2, 77
MIB = 1 << 20

# What libvgpu does not hold yet, and why: docs/enforcement.md says so of each. One that passes must be taken off the list.
NOT_YET = {}


def names(build, env=None):
    """{name of a path: how it ends without libvgpu, "breaks" or "passes"}; libcuda.so.1 must be found."""
    text = subprocess.run([build / "tests/cuda-path", "--list"], check=True, capture_output=True, text=True, env=env).stdout
    return dict(line.split() for line in text.splitlines())


def environment(limit, cores, slack=0, bare=False):
    """What a program is told (tests/cuda/check.h)."""
    env = {"HAMI_CHECK_LIMIT": str(limit), "HAMI_CHECK_CORES": str(cores), "HAMI_CHECK_SLACK": str(slack)}
    return {**env, "HAMI_CHECK_BARE": "1"} if bare else env


def box(build, folder, limit, cores=0):
    """libvgpu preloaded, with limits by the environment: a "container" whose processes share the region in this folder."""
    env = {"LD_PRELOAD": str(build / "lib/libvgpu.so"), "CUDA_DEVICE_MEMORY_LIMIT": str(limit),
           "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(folder / "x.cache")}
    return {**env, "CUDA_DEVICE_SM_LIMIT": str(cores), "GPU_CORE_UTILIZATION_POLICY": "force"} if cores else env


def run(command, env=None, timeout=60):
    """(exit status, what it said); a program that hangs is ended and cannot say anything."""
    try:
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired as e:
        return CANNOT, f"cannot: it hung for {timeout} s: {(e.stdout or b'').decode(errors='replace')}"
    return done.returncode, (done.stdout + done.stderr).strip()


def has_teeth(ends, status):
    """Whether the run without libvgpu ended as it must for the check to mean anything."""
    return status in ((PASSED,) if ends == "passes" else (BROKEN,)) or status == NOT_AVAILABLE
