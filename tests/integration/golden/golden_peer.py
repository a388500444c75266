"""What the golden replay needs: the recorded lines, a node of our agent for each description, the comparison.

A line of plugin.jsonl.gz and what our agent gave for the same input are both made flat: {"path.to.value": value}. Where
they differ, the list of differences must say so, with its reason; what it lists must differ.
"""
import fnmatch
import gzip
import json
import os
import pathlib
import queue
import re
import subprocess

import yaml

from api_server import ApiServer
from kubelet_peer import Kubelet, Plugin, pb, wait_until

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
ABSENT = "(absent)"


def recording(name):
    with gzip.open(GOLDEN / name, "rt") as f:
        return [json.loads(line) for line in f]


def lines(action):
    return [line for line in recording("plugin.jsonl.gz") if line["action"] == action]


def name_of(line):
    """node/RUN, or node/RUN/SCENARIO: what the list of differences calls it."""
    return "/".join(line[k] for k in ("node", "run", "scenario") if k in line)


class GoldenKubelet(Kubelet):
    """Takes any resource, and remembers what it was told."""

    def register(self, request, context):
        plugin = Plugin(self.folder / request.endpoint)
        self.options = plugin.options()
        self.plugin, self.stream = plugin, plugin.watch()
        self.registered.put(request)
        return pb.Empty()


def described(description):
    """A description as tests/integration/golden/described_nvml.c reads it."""
    out = [f"gpu {g['uuid']} {g['mem']} {g['minor']} {g['bus']} {g['numa_node']} {g['name']}" for g in description["gpus"]]
    return "\n".join(out + [" ".join(map(str, link)) for link in description["links"]]) + "\n"


class GoldenNode:
    """Our agent in mode hami, with a description's files, flags and environment."""

    def __init__(self, build, folder, name, description, *flags):
        self.build, self.folder, self.name, self.description = build, pathlib.Path(folder), name, description
        self.flags = flags
        self.kubelet = GoldenKubelet(self.folder / "k")
        self.api = ApiServer()
        self.log_path = self.folder / "agent.log"
        self.hook = self.folder / "usr/local"
        self.process = None

    def write_files(self):
        (self.folder / "nvml").write_text(described(self.description))
        (self.folder / "device-config.yaml").write_text(json.dumps({"nvidia": self.description["nvidia"]}))
        config = self.description["config_json"]
        if config is not None:
            text = config if isinstance(config, str) else json.dumps(config)
            (self.folder / "config.json").write_text(text)
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.api.port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))
        (self.folder / "libvgpu.so").write_bytes(b"\x7fELF of the test")
        node = {"path": "/dev/null", "hostPath": "/dev/null"}
        (self.folder / "nvidia.json").write_text(json.dumps({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [
            {"name": str(i), "containerEdits": {"deviceNodes": [node]}} for i in range(16)]}))
        (self.folder / "mig-minors").write_text("".join(
            f"gpu{g}/gi{i}/access {100 * g + 2 * i}\ngpu{g}/gi{i}/ci0/access {100 * g + 2 * i + 1}\n" for g in range(2) for i in range(1, 50)))
        (self.hook / "vgpu").mkdir(parents=True)

    def start(self):
        self.write_files()
        self.api.put_tree("nodes", None, {"metadata": {"name": self.name}, "status": {"nodeInfo": {
            "kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.2.9"}}})
        self.kubelet.start()
        at = self.folder
        flags = [f"--kubelet-socket={self.kubelet.socket}", f"--state-dir={at}/state", f"--cdi-dir={at}/cdi",
                 f"--pod-resources-socket={at}/pods.sock", "--metrics-bind-address=", f"--libvgpu={at}/libvgpu.so", f"--nvidia-cdi-spec={at}/nvidia.json", f"--mig-minors={at}/mig-minors", "--v=4", "--mode=hami",
                 f"--nvml-library={self.build}/tests/libdescribed_nvml.so", f"--kubeconfig={at}/kubeconfig",
                 f"--node-name={self.name}", f"--config-file={at}/device-config.yaml", f"--node-config={at}/config.json",
                 *self.description["flags"], *self.flags]
        env = {**os.environ, **self.description["env"], "DESCRIBED_NVML": f"{at}/nvml", "HOOK_PATH": str(self.hook)}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([str(self.build / "bin/hami-device-plugin"), *flags], stdout=log, stderr=log,
                                            env=env)

    def wait_ready(self):
        """Registered, the devices told, the annotations written. The exit status where the agent ended instead."""
        def ready():
            return self.process.poll() is not None or \
                (self.kubelet.stream and "hami.io/node-nvidia-register" in self.annotations())
        try:
            wait_until("a registered node", 20, ready)
            self.request = self.kubelet.registered.get(timeout=10)
        except (AssertionError, queue.Empty):
            if self.process.poll() is None:
                raise AssertionError(self.log_path.read_text()[-4000:])
        return self.process.poll()

    def annotations(self):
        return self.api.objects["nodes", None, self.name]["metadata"]["annotations"]

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)
        self.kubelet.stop()
        self.api.down()


# --- comparison -------------------------------------------------------------------------------------------------------
KEYS = ("id", "ID", "uuid", "container_path", "reason")  # what makes an item of a list known


def flat(value, path=""):
    """{"a.b[GPU-1].c": 1}: items of lists are known by a key of theirs, else by their place."""
    if isinstance(value, dict) and value:
        out = {}
        for key, v in value.items():
            out.update(flat(v, f"{path}.{key}" if path else key))
        return out
    if isinstance(value, list) and value:
        out = {}
        for i, v in enumerate(value):
            name = next((k for k in KEYS if isinstance(v, dict) and k in v), None)
            rest = {k: x for k, x in v.items() if k != name} if name else v
            out.update(flat(rest, f"{path}[{v[name] if name else i}]"))
        return out
    return {path: value}


def differences(golden, ours):
    return flat_differences(flat(golden), flat(ours))


def flat_differences(a, b):
    """{path: (the first's, the second's)}"""
    return {path: (a.get(path, ABSENT), b.get(path, ABSENT)) for path in sorted(a.keys() | b.keys())
            if a.get(path, ABSENT) != b.get(path, ABSENT)}


class Known:
    """tests/golden/differences.yaml: what differs, how often, and why."""

    def __init__(self, action):
        entries = yaml.safe_load((GOLDEN / "differences.yaml").read_text())
        self.entries = [e for e in entries if e["action"] == action]
        self.met = [0] * len(self.entries)

    @classmethod
    def fits(cls, e, path, golden, ours):
        if "values" in e:
            return e["values"].get(path) == [golden, ours]
        return re.fullmatch(e["path"], path) and ("golden" not in e or cls.same(e["golden"], golden)) and \
            ("ours" not in e or cls.same(e["ours"], ours))

    @staticmethod
    def same(pattern, value):
        """A listed value: a pattern for texts, anything else as it is; not listed: any."""
        if isinstance(pattern, str) and isinstance(value, str):
            return fnmatch.fnmatchcase(value, pattern)
        return pattern == value

    def find(self, line, path, golden, ours):
        """The first entry that fits; None where there is none."""
        return next((i for i, e in enumerate(self.entries)
                     if fnmatch.fnmatchcase(line, e["line"]) and self.fits(e, path, golden, ours)), None)

    def lists(self, line, field):
        """Has the field a difference there, by an entry of its own?"""
        return any(fnmatch.fnmatchcase(line, e["line"]) and e.get("path", "").startswith(field) for e in self.entries)

    def explains(self, line, found):
        return all(self.find(line, path, *values) is not None for path, values in found.items())

    def unlisted(self, line, found):
        """What is not listed; what is counts as met."""
        bad = []
        for path, (golden, ours) in found.items():
            i = self.find(line, path, golden, ours)
            if i is None:
                bad.append(f"{line}: {path}: HAMi {golden!r}, ours {ours!r}")
            else:
                self.met[i] += 1
        return bad

    def outdated(self):
        listed = [e.get("times", len(e.get("values", ()))) for e in self.entries]
        return [f"listed {times} times, met {n}: {e['line']}: {e.get('path', list(e.get('values', ())))}"
                for e, times, n in zip(self.entries, listed, self.met) if times != n]
