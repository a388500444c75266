"""What libvgpu costs: a start of a program that uses no GPU and of one that does, allocations and lookups. The peer is the
same program on the same simulated node without the preload, in turns."""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess

from figures import Figure

NODE = pathlib.Path(__file__).resolve().parents[2] / "sim/nodes/t4x2.yaml"
# Many short rounds: with and without take turns fast, and a slow phase of the machine hits both.
SPAWN_ROUNDS = 101
SPAWNS = 20
CUDA_SPAWNS = 3
COUNT = 200000  # allocations and frees, or lookups
LIVE = (1, 20000, 1000000)
# name, arguments of vgpu_bench, goal
CALLS = [(f"alloc_free_live_{live}", ("alloc", str(live), str(COUNT)), "<= peer + 200") for live in LIVE]
CALLS.append(("lookup", ("lookup", str(COUNT)), "<= peer + 100"))


def spawn(context, program, *arguments, spawns=SPAWNS, env=None):
    run = subprocess.run([str(context.build / "tests/spawn_bench"), str(SPAWN_ROUNDS), str(spawns),
                          str(context.build / "lib/libvgpu.so"), program, *arguments],
                         capture_output=True, text=True, check=True, env=env)
    return json.loads(run.stdout)


@contextlib.contextmanager
def node(context):
    """A simulated node; its environment, with a limit of HAMi's kind and a region that processes share."""
    env = {**os.environ, "HAMI_SIM_DIR": str(context.folder / "sim"), "LD_LIBRARY_PATH": str(context.build / "sim"),
           "CUDA_DEVICE_MEMORY_LIMIT": "12g", "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(context.folder / "cache/x")}
    (context.folder / "cache").mkdir()
    simctl = str(context.build / "bin/hami-simctl")
    subprocess.run([simctl, "up", str(NODE)], check=True, env=env, capture_output=True)
    try:
        yield env
    finally:
        subprocess.run([simctl, "down"], check=False, env=env, capture_output=True)


def call(context, env, arguments):
    run = subprocess.run([str(context.build / "tests/vgpu_bench"), *arguments], env=env, capture_output=True, text=True,
                         check=True)
    return json.loads(run.stdout)["value"]


def measure_calls(context, env):
    preloaded = {**env, "LD_PRELOAD": str(context.build / "lib/libvgpu.so")}
    values = {}
    for _ in range(context.rounds):
        for name, arguments, _ in CALLS:
            for side, use in (("with", preloaded), ("without", env)):
                values.setdefault((name, side), []).append(call(context, use, arguments))
    for name, _, goal in CALLS:
        yield Figure(f"vgpu.{name}_ns", "ns", statistics.median(values[name, "with"]), "without the preload",
                     statistics.median(values[name, "without"]), goal)


def measure(context):
    if not (context.build / "lib/libvgpu.so").exists():
        yield Figure("vgpu.start_us", "us", peer="without the preload", goal="<= peer + 50", why="libvgpu.so is not built")
        return
    plain = spawn(context, "/bin/true")
    yield Figure("vgpu.start_us", "us", plain["with_us"], "without the preload", plain["without_us"], "<= peer + 50")
    with node(context) as env:
        cuda = spawn(context, str(context.build / "tests/vgpu_bench"), "start", spawns=CUDA_SPAWNS, env=env)
        yield Figure("vgpu.start_cuda_us", "us", cuda["with_us"], "without the preload", cuda["without_us"],
                     "<= peer + 5000")
        yield from measure_calls(context, env)
