"""What libvgpu costs: a start of a program that uses no GPU, and the figures of vgpu_bench (programs that do)."""
import json
import subprocess

from figures import Figure

SPAWNS = 300  # a round


def spawn(context, program, *arguments, spawns=SPAWNS, env=None):
    run = subprocess.run([str(context.build / "tests/spawn_bench"), str(context.rounds), str(spawns),
                          str(context.build / "lib/libvgpu.so"), program, *arguments],
                         capture_output=True, text=True, check=True, env=env)
    return json.loads(run.stdout)


def measure(context):
    if not (context.build / "lib/libvgpu.so").exists():
        yield Figure("vgpu.start_us", "us", peer="without the preload", goal="<= peer + 50", why="libvgpu.so is not built")
        return
    plain = spawn(context, "/bin/true")
    yield Figure("vgpu.start_us", "us", plain["with_us"], "without the preload", plain["without_us"], "<= peer + 50")
