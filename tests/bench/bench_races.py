"""Many processes of one container at once: do they ever hold more than its limit, and how long do their starts take? 200
of them, with a limit file and a region, on the simulated node."""
import contextlib
import json
import re
import subprocess
import time

from bench_vgpu import NODE, in_container
from figures import Figure

PROCESSES = 200
ROUNDS = 10000
PAGE = 2 << 20
MEMORY = (PROCESSES - 1) * PAGE  # for all but one of them
START_ROUNDS = 5


def status(context, env):
    run = subprocess.run([str(context.build / "bin/hami-simctl"), "status", "-j"], check=True, env=env, capture_output=True,
                         text=True)
    return json.loads(run.stdout)["cards"][0]


@contextlib.contextmanager
def node(context):
    """A simulated node whose contexts are free, so that 200 processes fit on a card; its environment and a card's UUID."""
    env = {"PATH": "/usr/bin:/bin", "HAMI_SIM_DIR": str(context.folder / "sim"), "LD_LIBRARY_PATH": str(context.build / "sim")}
    text = re.sub(r"context_mib: \d+", "context_mib: 0", NODE.read_text())
    (context.folder / "node.yaml").write_text(text)
    simctl = str(context.build / "bin/hami-simctl")
    subprocess.run([simctl, "up", str(context.folder / "node.yaml")], check=True, env=env, capture_output=True)
    try:
        yield env, re.search(r"uuid: (GPU-[0-9a-f-]+)", text).group(1)
    finally:
        subprocess.run([simctl, "down"], check=False, env=env, capture_output=True)


def container(context, uuid, memory):
    """The start of a command line whose processes run in a container with so much of the card, and its region."""
    folder = context.folder / "container"
    (folder / "usage").mkdir(parents=True)
    (folder / "limits").write_text(f"hami-vgpu-limits 1\ngpu={uuid} memory={memory} cores=100\nend\n")
    region = folder / "usage/region"
    subprocess.run([str(context.build / "tests/region-tool"), "create", str(region), f"{uuid}={memory}"], check=True)
    return in_container(context, folder), region


def region_peak(context, region):
    run = subprocess.run([str(context.build / "tests/region-tool"), "show", str(region)], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["cards"][0]["peak"]


def overrun(context, env, command, region, rounds=ROUNDS):
    """(bytes over the limit, by whoever saw more: region or driver; what the race itself saw)."""
    before = status(context, env)["reserved_bytes"]
    run = subprocess.run([*command, str(context.build / "tests/overrun_bench"), str(PROCESSES), str(rounds), str(PAGE)], env=env,
                         check=True, capture_output=True, text=True)
    seen = json.loads(run.stdout)
    peaks = [status(context, env)["peak_bytes"] - before, region_peak(context, region), seen["most"] * PAGE]
    if min(peaks) < MEMORY:
        raise RuntimeError(f"the limit of {MEMORY} was never reached: {peaks}")
    return max(peaks) - MEMORY, seen


def starts(context, env, command):
    """Seconds until 200 programs that use a card, started at once, are done."""
    argv = [*command, "sh", "-c", f"i=0; while [ $i -lt {PROCESSES} ]; do \"$0\" start & i=$((i+1)); done; wait",
            str(context.build / "tests/vgpu_bench")]
    before = time.perf_counter()
    subprocess.run(argv, env=env, check=True, capture_output=True)
    return time.perf_counter() - before


def measure(context):
    with node(context) as (env, uuid):
        command, region = container(context, uuid, MEMORY)
        try:
            subprocess.run([*command, "true"], env=env, check=True, capture_output=True)
        except (subprocess.CalledProcessError, OSError) as e:
            yield Figure("vgpu.overrun", "bytes", goal="<= 0", why=f"no mount namespace here: {e}")
            return
        over, seen = overrun(context, env, command, region)
        yield Figure("vgpu.overrun", "bytes", over, goal="<= 0")
        yield Figure("vgpu.overrun_refused", "requests", seen["refused"], goal=f">= {ROUNDS}")
        with_us, without = [], []
        for _ in range(START_ROUNDS):
            with_us.append(starts(context, env, command))
            without.append(starts(context, env, []))
        yield Figure("vgpu.start_200_at_once_s", "s", max(with_us), "without the preload", max(without), "<= 2")
