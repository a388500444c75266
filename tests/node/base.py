"""What every node offers: a simulated driver, the agent, and pods. Subclasses say how pods run."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
RESOURCE = "hami.com/vgpu"


def plain_build():
    """The build folder of what runs inside containers. A sanitizer's runtime must come before every other library, where
    the preload comes: a build with sanitizers takes these few from the release."""
    probe = BUILD / "tests/vgpu-probe"
    sanitized = probe.exists() and b"__asan_init" in probe.read_bytes()
    return pathlib.Path(os.environ.get("HAMI_PLAIN_BUILD", REPO / "build")) if sanitized else BUILD


PLAIN = plain_build()
MIB = 1024 * 1024


def wait_until(what, seconds, probe, every=0.05):
    """probe() until it is true; its value. Fails with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"timeout after {seconds} s: {what}")
        time.sleep(every)


@dataclasses.dataclass
class Container:
    command: list  # argv
    vgpu: int = 0
    name: str = "c"
    env: dict = dataclasses.field(default_factory=dict)
    init: bool = False
    sidecar: bool = False  # an init container with restartPolicy Always


@dataclasses.dataclass
class Pod:
    name: str
    containers: list
    restart: str = "Never"

    @staticmethod
    def one(name, command, vgpu=1, restart="Never", **kw):
        return Pod(name, [Container(command, vgpu, **kw)], restart)


class Node:
    resource = RESOURCE

    """Folders as the test sees them; the agent may see them at other paths (agent_path)."""
    slot_mib = None  # of a slot, where the agent is told; else the card is cut evenly

    def __init__(self, folder, card_file="t4x2.yaml", slots=4):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sim = self.folder / "sim"
        self.state = self.folder / "state"
        self.card_file = card_file
        self.slots = slots
        self.agent = None
        self.agent_log = self.folder / "agent.log"
        self.log_from = 0

    # --- what a subclass must say -------------------------------------------------------------------------------
    def command(self, argv):
        """argv as it must be run to be inside the node."""
        raise NotImplementedError

    def plugin_dir(self):
        raise NotImplementedError

    def cdi_dir(self):
        raise NotImplementedError

    def agent_paths(self):
        """The agent's flags that depend on the node."""
        raise NotImplementedError

    # --- driver ----------------------------------------------------------------------------------------------------
    def simctl(self, *args):
        done = subprocess.run(self.command([str(BUILD / "bin/hami-simctl"), "--dir", str(self.sim), *args]),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"hami-simctl {args}: {done.stderr}"
        return done.stdout

    def driver_up(self):
        self.simctl("up", str(REPO / "sim/nodes" / self.card_file), f"--lib-dir={PLAIN}/sim")

    def driver_down(self):
        self.simctl("down")

    def driver_status(self):
        return json.loads(self.simctl("status", "-j"))

    # --- agent ---------------------------------------------------------------------------------------------------------
    def start_agent(self, *flags, env=None, binding="late"):
        assert self.agent is None
        argv = [str(BUILD / "bin/hami-device-plugin"), f"--state-dir={self.state}", f"--binding={binding}",
                f"--nvml-library={BUILD}/sim/libnvidia-ml.so.1", f"--libvgpu={PLAIN}/lib/libvgpu.so", "--v=4",
                *self.agent_paths(), *flags]
        full = {**os.environ, "HAMI_SIM_DIR": str(self.sim), "HAMI_VGPU_CORES_PER_DEVICE": str(self.slots), **(env or {})}
        with open(self.agent_log, "ab") as log:
            self.log_from = log.tell()
            self.agent = subprocess.Popen(self.command(argv), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=full)

    def agent_says(self):
        """Since its last start."""
        return self.agent_log.read_bytes()[self.log_from:].decode(errors="replace")

    def wait_registered(self, seconds=90):
        """By this start of the agent: what the Node shows may still be the last one's."""
        wait_until("the agent's registration", seconds, lambda: "INFO  registered" in self.agent_says(), every=0.1)

    def agent_pid(self):
        """The agent's pid as the test's own namespace has it (its wrapper's only child, or itself)."""
        pid = self.agent.pid
        for _ in range(100):
            comm = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            if comm == "hami-device-plu":
                return pid
            kids = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if kids:
                pid = int(kids[0])
            else:
                time.sleep(0.02)
        raise AssertionError("the agent did not start: " + self.agent_log.read_text()[-2000:])

    def stop_agent(self, signo=signal.SIGTERM):
        if self.agent is None:
            return 0
        if self.agent.poll() is None:
            os.kill(self.agent_pid(), signo)
            os.kill(self.agent.pid, signal.SIGCONT)  # nsenter stops itself when its child is stopped
        code = self.agent.wait(10)
        self.agent = None
        return code

    def smi(self):
        """What hami-smi says, as JSON."""
        done = subprocess.run(self.command([str(BUILD / "bin/hami-smi"), "-j", f"--state-dir={self.state}",
                                            f"--nvml-library={BUILD}/sim/libnvidia-ml.so.1"]),
                              capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "HAMI_SIM_DIR": str(self.sim)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # --- what lies about for an allocation ----------------------------------------------------------------------------------
    def leftovers(self):
        """Every file that stands for an allocation: specs, folders, claims."""
        def names(folder, prefix=""):
            path = pathlib.Path(folder)
            return sorted(p.name for p in path.iterdir() if p.name.startswith(prefix)) if path.is_dir() else []
        return {"specs": names(self.cdi_dir(), "hami-vgpu-"), "alloc": names(self.state / "alloc"),
                "claims": names(self.state / "claims")}

    def holds_one(self):
        """One allocation's files, none of them being written."""
        found = self.leftovers()
        return all(len(names) == 1 for names in found.values()) and ".tmp-" not in str(found)

    def no_leftovers(self):
        return self.leftovers() == {"specs": [], "alloc": [], "claims": []}
