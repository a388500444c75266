"""What libvgpu costs: a start of a program that uses no GPU and of one that does, allocations, lookups and launches; and how far a share of the card is off. The peer is the
same program on the same simulated node without the preload, in turns."""
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess

from figures import Figure

NODE = pathlib.Path(__file__).resolve().parents[2] / "sim/nodes/t4x2.yaml"
# Many short rounds: with and without take turns fast, and a slow phase of the machine hits both.
SPAWN_ROUNDS = 101
SPAWNS = 20
CUDA_SPAWNS = 3
COUNT = 200000  # allocations and frees, or lookups
SHARES = ((10, 1000000), (30, 1000000), (30, 10000000), (50, 200000), (80, 1000000))  # percent, length of the kernels
SHARE_ROUNDS = 3
LIVE = (1, 20000, 1000000)
# name, arguments of vgpu_bench, goal
CALLS = [(f"alloc_free_live_{live}", ("alloc", str(live), str(COUNT)), "<= peer + 200") for live in LIVE]
CALLS.append(("launch", ("launch", str(COUNT)), "<= peer + 5"))
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


def in_container(context, folder, preload=True):
    """The start of a command line whose process finds the folder of a container: /run is its own."""
    script = ('mount -t tmpfs none /run && mkdir /run/hami-vgpu && mount --bind "$0" /run/hami-vgpu && '
              'mount --bind "$0/usage" /run/hami-vgpu/usage && '
              + ('LD_PRELOAD="$1" && export LD_PRELOAD && ' if preload else "") + 'shift && exec "$@"')
    return ["unshare", *(["-m"] if os.geteuid() == 0 else ["-rm"]), "sh", "-c", script, str(folder),
            str(context.build / "lib/libvgpu.so")]


def limited(context, cores, cards=1):
    """in_container with a limit file and its region."""
    folder = context.folder / f"limited{cores}-{cards}"
    if not folder.exists():
        (folder / "usage").mkdir(parents=True)
        uuids = re.findall(r"uuid: (GPU-[0-9a-f-]+)", NODE.read_text())[:cards]
        memory = 8 << 30
        lines = "".join(f"gpu={uuid} memory={memory} cores={cores}\n" for uuid in uuids)
        (folder / "limits").write_text(f"hami-vgpu-limits 1\n{lines}policy=force\nend\n")
        subprocess.run([str(context.build / "tests/region-tool"), "create", str(folder / "usage/region"),
                        *(f"{uuid}={memory}" for uuid in uuids)], check=True)
    return in_container(context, folder)


def call_limited(context, env, cores, arguments, cards=1):
    run = subprocess.run([*limited(context, cores, cards), str(context.build / "tests/vgpu_bench"), *arguments], env=env,
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["value"]


def measure_limit(context, env):
    env = {**{k: v for k, v in env.items() if not k.startswith("CUDA_DEVICE_")}, "NVIDIA_VISIBLE_DEVICES": "0"}
    try:
        launch, both = ("launch", str(COUNT)), {**env, "NVIDIA_VISIBLE_DEVICES": "all"}
        got = [(call(context, env, launch), call_limited(context, env, 90, launch), call_limited(context, env, 100, launch),
                call_limited(context, both, 100, launch, cards=2)) for _ in range(context.rounds)]
    except (subprocess.CalledProcessError, OSError) as e:
        yield Figure("vgpu.launch_limited_ns", "ns", goal="<= peer + 30", why=f"no mount namespace here: {e}")
        return
    bare, *with_us = map(statistics.median, zip(*got))
    for value, name, goal in zip(with_us, ("limited", "whole_card", "two_whole_cards"), (30, 5, 5)):
        yield Figure(f"vgpu.launch_{name}_ns", "ns", value, "without the preload", bare, f"<= peer + {goal}")
    for cores, ns in SHARES:
        got = statistics.median(call_limited(context, env, cores, ("share", str(ns))) for _ in range(SHARE_ROUNDS))
        yield Figure(f"vgpu.share_{cores}_of_{ns // 1000}us_off", "%", abs(got - cores), goal="<= 3")


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
        yield from measure_limit(context, env)
