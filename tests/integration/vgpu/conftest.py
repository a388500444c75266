"""A simulated node, and children that run under libvgpu in a mount namespace of their own: /run is theirs."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
NEEDED = ["lib/libvgpu.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1", "bin/hami-simd", "bin/hami-simctl",
          "tests/region-tool"]


def pytest_collection_modifyitems(items):
    """A sanitizer's runtime must come before every other library, where the preload comes: under sanitizers the same code is
    tested by tests/unit/region and tests/unit/vgpu."""
    probe = BUILD / "tests/vgpu-probe"
    if probe.exists() and b"__asan_init" in probe.read_bytes():
        for item in items:
            if HERE in pathlib.Path(item.path).parents:
                item.add_marker(pytest.mark.skip(reason="a build with sanitizers cannot be preloaded"))


def can_unshare():
    return subprocess.run(["unshare", *UNSHARE, "true"], capture_output=True, check=False).returncode == 0


UNSHARE = ["-m"] if os.geteuid() == 0 else ["-rm"]


class Node:
    """A node of hami-simctl; run() starts children on it."""

    def __init__(self, folder, description, *options):
        missing = [name for name in NEEDED if not (BUILD / name).exists()]
        assert not missing, f"not built: {', '.join(missing)}"
        self.folder = folder
        self.env = {"PATH": "/usr/bin:/bin", "HAMI_SIM_DIR": str(folder / "sim"), "HAMI_BUILD": str(BUILD),
                    "LD_LIBRARY_PATH": str(BUILD / "sim"), "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        self.simctl("up", REPO / "sim/nodes" / description, *options)
        self.cards = [card["uuid"] for card in self.status()["cards"]]

    def simctl(self, *words, check=True, timeout=None):
        return subprocess.run([BUILD / "bin/hami-simctl", *words], check=check, env=self.env, capture_output=True, text=True,
                              timeout=timeout).stdout

    def status(self):
        return json.loads(self.simctl("status", "-j", timeout=20))

    def down(self):
        self.simctl("down", check=False)


def limit_file(cards, memory, cores, *lines):
    """Its text: so much of each card, and other lines."""
    return "\n".join(["hami-vgpu-limits 1", *(f"gpu={uuid} memory={memory} cores={cores}" for uuid in cards), *lines, "end", ""])


class Container:
    """What the agent mounts for one container: limits and region, in a folder that becomes /run/hami-vgpu."""
    build = BUILD

    def __init__(self, node, folder, memory=None, limits=None, cards=None, cores=50, lines=()):
        """memory: of each card that is the container's (None: of all); or limits: the text of the whole file."""
        self.node, self.folder = node, folder
        folder.mkdir()
        usage = folder / "usage"
        usage.mkdir(mode=0o777)
        if limits is None and memory is not None:
            limits = limit_file(cards or node.cards, memory, cores, *lines)
        if limits is not None:
            (folder / "limits").write_text(limits)
        self.region = usage / "region"

    def make_region(self, memory, cards=None):
        cards = cards or self.node.cards
        subprocess.run([BUILD / "tests/region-tool", "create", self.region, *[f"{uuid}={memory}" for uuid in cards]],
                       check=True)

    def snapshot(self, path=None):
        text = subprocess.run([BUILD / "tests/region-tool", "show", path or self.region], check=True,
                              capture_output=True, text=True).stdout
        return json.loads(text)

    def command(self, argv, env=None, preload=True):
        """argv in the container; the preload is set inside only."""
        inner = {**self.node.env, **(env or {})}
        if preload:
            inner["LD_PRELOAD"] = str(BUILD / "lib/libvgpu.so")
        sets = [f"{name}={value}" for name, value in inner.items()]
        # The usage folder is a mount of its own, as the agent has it made: that is how it knows whose a process is.
        script = ('mount -t tmpfs none /run && mkdir /run/hami-vgpu && mount --bind "$0" /run/hami-vgpu && '
                  '{ [ ! -d "$0/usage" ] || mount --bind "$0/usage" /run/hami-vgpu/usage; } && exec env -i "$@"')
        return ["unshare", *UNSHARE, "sh", "-c", script, str(self.folder), *sets, *map(str, argv)]

    def start(self, argv, **kwargs):
        env, preload = kwargs.pop("env", None), kwargs.pop("preload", True)
        return subprocess.Popen(self.command(argv, env, preload), text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def python(self, code, env=None, preload=True, check=True, args=()):
        """Runs code (with driver.py imported) in the container; what it prints as JSON."""
        child = self.start([sys.executable, "-c", "from driver import *\nimport json\n" + textwrap.dedent(code), *args],
                           env=env, preload=preload)
        out, err = child.communicate(timeout=120)
        if check and child.returncode != 0:
            pytest.fail(f"child: {child.returncode}\n{out}\n{err}")
        return json.loads(out) if out.strip() else None


class AgentContainer(Container):
    """One whose folder the agent made."""

    def __init__(self, node, folder):
        self.node, self.folder, self.region = node, folder, folder / "usage/region"

    def limit(self, *lines):
        """Other lines of its limit file: priority=, policy=."""
        path, keys = self.folder / "limits", {line.split("=")[0] for line in lines}
        kept = [line for line in path.read_text().splitlines() if line != "end" and line.split("=")[0] not in keys]
        path.with_suffix(".new").write_text("".join(line + "\n" for line in [*kept, *lines, "end"]))
        os.rename(path.with_suffix(".new"), path)


@pytest.fixture
def agent_container():
    return AgentContainer


@contextlib.contextmanager
def running(description, *options, context_mib=None):
    """A node for as long as this lasts; context_mib: of a card, taken by each context instead of what the description says."""
    if not can_unshare():
        pytest.skip("needs mount namespaces (root, or user namespaces)")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hm-vgpu-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if context_mib is not None:
            text = (REPO / "sim/nodes" / description).read_text()
            description = folder / "node.yaml"
            description.write_text(re.sub(r"context_mib: \d+", f"context_mib: {context_mib}", text))
        n = Node(folder, description, *options)
        stack.callback(n.down)
        yield n


def nodes(context_mib, source="t4x2.yaml"):
    """A node whose contexts take so much of a card."""
    with running(source, context_mib=context_mib) as n:
        yield n


@pytest.fixture(scope="session")
def node():
    """Contexts are free here, so that a test can count its own bytes; test_vgpu_overhead.py has one where they are not."""
    yield from nodes(context_mib=0)


@pytest.fixture(scope="session")
def switched_node():
    """Two cards that can be in a multicast object."""
    yield from nodes(context_mib=0, source=REPO / "tests/unit/sim/cuda/node_switch.yaml")


@pytest.fixture
def container(node, short_tmp):
    """container(memory=..., ...): limits (as of Container) and region of that many bytes on each card."""
    return containers(node, short_tmp)


@pytest.fixture
def switched(switched_node, short_tmp):
    """As container, on the node with a switch."""
    return containers(switched_node, short_tmp)


def containers(node, short_tmp):
    made = []

    def make(memory=None, limits=None, region=True, cards=None, **more):
        c = Container(node, short_tmp / f"c{len(made)}", memory, limits, cards, **more)
        made.append(c)
        if region and memory is not None:
            c.make_region(memory, cards)
        return c

    return make


@pytest.fixture(scope="session")
def node_of():
    """node_of("sm20.yaml", "--clock=virtual"): a node of another description than t4x2, with options of hami-simctl."""
    made = {}
    with contextlib.ExitStack() as stack:
        def make(*arguments):
            if arguments not in made:
                made[arguments] = stack.enter_context(running(*arguments))
            return made[arguments]

        yield make


@pytest.fixture
def container_on(short_tmp):
    """container_on(node, cores=30, policy="force", priority=0): a container with a share of each card's time."""
    made = []

    def make(on, cores, policy=None, priority=None):
        lines = [f"{name}={value}" for name, value in (("priority", priority), ("policy", policy)) if value is not None]
        c = Container(on, short_tmp / f"n{len(made)}", 4 << 30, cores=cores, lines=lines)
        made.append(c)
        c.make_region(4 << 30)
        return c

    return make
