"""Golden scenarios of Allocate, played to our agent: a pod in the API server, a lock on the node, the kubelet's calls."""
import base64
import itertools
import json
import re
import shutil
import tempfile
import time
import uuid
from concurrent import futures

import grpc
from google.protobuf.json_format import MessageToDict

from golden_peer import GoldenNode, differences, lines, name_of
from kubelet_peer import pb, wait_until

LOCK = "hami.io/mutex.lock"
DESCRIPTIONS = {(line["node"], line["run"]): line["description"] for line in lines("node")}
GROUPS = [(key, list(group)) for key, group in itertools.groupby(lines("allocate"), lambda line: (line["node"], line["run"]))]
SETTLE_S, QUIET_S = 3, 0.15  # for patches behind an answer


def message(m):
    return MessageToDict(m, preserving_proto_field_name=True)


def error_of(e):
    return {"code": e.code().name, "message": e.details()}


def without_instance_numbers(value):
    """A GPU instance's number, which is in its device's UUID as well, tells how many were made before on the card: HAMi's
    took over those of pods that were gone, ours ends them and makes new ones."""
    text = json.dumps(value)
    for gi, number in re.findall(r'MIG-[0-9a-f]{8}-([0-9a-f]{4})-[-0-9a-f]{22}\\+",\\+"gpuInstanceID\\+":(\d+)', text):
        assert int(gi, 16) == int(number), text
    text = re.sub(r"(MIG-[0-9a-f]{8}-)[0-9a-f]{4}-", r"\1<gi>-", text)
    return json.loads(re.sub(r'(gpuInstanceID\\+":)\d+', r"\1<gi>", text))


class Scenario:
    """One line: the pod in the API, the lock on the node, the calls."""

    def __init__(self, node, line):
        self.node, self.line = node, line
        self.now, self.uid = int(time.time()), str(uuid.uuid4())
        self.stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now))

    def make(self):
        pod = json.loads(json.dumps(self.line["pod"]).replace("<time>", str(self.now)).replace("<poduid>", self.uid))
        pod["status"] = {"phase": self.line["phase"]}
        self.name = pod["metadata"]["name"]
        if self.line["scenario"].startswith("license"):
            for name in ("license", "vgpuvalidator", "libvgpu.so.unknown"):
                (self.node.hook / "vgpu" / name).touch()
        self.node.set_lock(self.line["lock"] and self.line["lock"].replace("<time>", self.stamp))
        self.node.api.put_tree("pods", "default", pod)
        self.node.wait_pod_seen(self.uid)

    def unmake(self):
        if self.line["node"] == "mig":
            self.fail()
            self.node.wait_pod_seen(self.uid)
        self.node.api.delete("pods", "default", self.name)
        self.node.set_lock(None)
        self.node.forget()

    def as_recorded(self, value):
        """Ours in the recording's words: times, UIDs and folders."""
        text = re.sub(r"/alloc/[0-9]+/", "/alloc/<n>/", json.dumps(value))
        text = re.sub(r"nvidia-device-plugin_[0-9]+", "nvidia-device-plugin_<uuid>", text)  # ours: the claim's number
        for ours, theirs in ((str(self.node.hook), "/usr/local"), (str(self.node.dev_root), ""), (self.stamp, "<time>"), (str(self.now), "<time>"),
                             (self.uid, "<poduid>"), (str(self.node.folder), "<folder>")):
            text = text.replace(ours, theirs)
        return without_instance_numbers(
            json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.cache|\": )", r"<uuid>\2", text)))

    def succeeded(self):
        return self.state()["pod_annotations_after"].get("hami.io/bind-phase") == "success"

    def state(self):
        annotations = self.node.api.objects["pods", "default", self.name]["metadata"]["annotations"]
        return {"pod_annotations_after": annotations, "lock_after": self.node.annotations().get(LOCK)}

    def containers(self, i):
        """Those that call i is for: the calls come in the order of the containers that ask, one again where it says so."""
        asking = [c["name"] for kind in ("initContainers", "containers") for c in self.line["pod"]["spec"].get(kind, [])
                  if self.node.resource in c.get("resources", {}).get("limits", {})]
        if self.line["scenario"].startswith("repeated-call"):
            asking.insert(1, asking[0])
        before = sum(len(call["devices_ids"]) for call in self.line["calls"][:i])
        count = len(self.line["calls"][i]["devices_ids"])
        return (asking + asking[-1:] * count)[before:before + count]

    def call(self, i):
        """What call i brought."""
        golden = self.line["calls"][i]
        out = {"preferred": self.preferred(golden)}
        try:
            answer = self.node.allocate(golden["devices_ids"])
            self.node.checkpoint(self.uid, self.containers(i), golden["devices_ids"], answer)
            return {**out, "response": answered(message(answer))}
        except grpc.RpcError as e:
            self.fail()
            return {**out, "error": error_of(e)}

    def fail(self):
        """What the kubelet does with a pod whose Allocate errs (UnexpectedAdmissionError)."""
        self.node.api.edit("pods", "default", self.name, status={"phase": "Failed"})

    def start(self, i, said):
        """Late binding: call i's containers are about to start. What they are started with stands in the answer's place."""
        if "response" not in said:
            return said
        try:
            started = [self.node.started_with(ids, c["cdi_devices"]) for ids, c in
                       zip(self.line["calls"][i]["devices_ids"], said["response"]["container_responses"])]
            return {**said, "response": {"container_responses": started}}
        except grpc.RpcError as e:
            return {"preferred": said["preferred"], "error": error_of(e)}

    def preferred(self, golden):
        request = pb.PreferredAllocationRequest(container_requests=[pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=self.node.ids, allocation_size=len(ids)) for ids in golden["devices_ids"]])
        try:
            answer = self.node.kubelet.plugin.unary("GetPreferredAllocation", request, pb.PreferredAllocationResponse)
            return cards_of(message(answer))
        except grpc.RpcError as e:
            return {"error": e.details()}


def cards_of(preferred):
    """Which cards are preferred; which of their replicas is told by no one and to no effect."""
    return [sorted(i.rsplit("-", 1)[0] for i in c.get("deviceIDs", [])) for c in preferred.get("container_responses", [])]


def answered(response):
    """An answer with CDI devices by name, and maps as such (our .proto has them as lists of pairs, which is the same on
    the wire)."""
    for container in response.get("container_responses", []):
        for name in ("envs", "annotations"):
            if isinstance(container.get(name), list):
                container[name] = {pair["key"]: pair.get("value", "") for pair in container[name]}
        if "cdi_devices" in container:
            container["cdi_devices"] = sorted(d["name"] for d in container["cdi_devices"])
    return response


def recorded(call):
    """What of a call is compared. Not HAMi's cache folders: ours are made for HAMi's monitor alone, in its own time."""
    call = {k: v for k, v in call.items() if k not in ("devices_ids", "cache_dirs")}
    call["preferred"] = cards_of(call["preferred"])
    if "response" in call:
        call["response"] = answered(json.loads(json.dumps(call["response"])))
    return call


class AllocateNode(GoldenNode):
    """The node with its pods' side: what a kubelet keeps, and what a scheduler writes."""

    def __init__(self, build, folder, name, description, binding):
        super().__init__(build, folder, name, description, f"--binding={binding}")
        self.late = binding == "late"
        self.dev_root = self.folder / "root"  # with device nodes, of a kind
        (self.dev_root / "dev").mkdir(parents=True)
        for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
            (self.dev_root / "dev" / name).touch()
        self.flags += (f"--dev-root={self.dev_root}",)

    def begin(self):
        self.start()
        assert self.wait_ready() is None, self.log_path.read_text()[-2000:]
        self.resource = self.request.resource_name
        self.ids = sorted(d.ID for d in self.kubelet.devices())

    def set_lock(self, value):
        self.api.edit("nodes", None, self.name, metadata={"annotations": {LOCK: value}})

    def wait_pod_seen(self, uid):
        time.sleep(0.1)

    def allocate(self, ids):
        request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=i) for i in ids])
        return self.kubelet.plugin.unary("Allocate", request, pb.AllocateResponse)

    def checkpoint(self, pod_uid, containers, ids, answer):
        """What a kubelet writes of an answer; one entry a container."""
        for name, of_it, response in zip(containers, ids, answer.container_responses):
            entries = [e for e in self.kubelet.entries if e["ContainerName"] != name]
            self.kubelet.entries = entries + [{
                "PodUID": pod_uid, "ContainerName": name, "ResourceName": self.resource, "DeviceIDs": {"0": list(of_it)},
                "AllocResp": base64.b64encode(response.SerializeToString()).decode()}]
        self.kubelet.write_checkpoint()

    def started_with(self, ids, names):
        """What PreStart puts into the specs of these CDI names, in the words of an Allocate answer."""
        self.kubelet.plugin.pre_start(ids)
        out = {"envs": {}, "mounts": []}
        for name in names:
            spec = json.loads((self.folder / f"cdi/hami-vgpu-{name.split('=')[1]}.json").read_text())
            (device,) = [d for d in spec["devices"] if d["name"] == name.split("=")[1]]
            for edits in (spec.get("containerEdits", {}), device["containerEdits"]):
                out["envs"].update(pair.split("=", 1) for pair in edits.get("env", []))
                out["mounts"] += [{"container_path": m["containerPath"], "host_path": m["hostPath"],
                                   **({"read_only": True} if "ro" in m.get("options", []) else {})}
                                  for m in edits.get("mounts", [])]
        return out

    def forget(self):
        """The pod is gone from the kubelet's checkpoint too."""
        self.kubelet.entries = []
        self.kubelet.write_checkpoint()


def settle(scenario, i, said, known, with_state=True):
    """Differences of call i, as soon as all are listed and nothing has changed for a while, or when the time for patches
    is up."""
    golden = without_instance_numbers(recorded(scenario.line["calls"][i]))
    if not with_state:
        golden = {k: v for k, v in golden.items() if k not in ("pod_annotations_after", "lock_after")}
    begun = time.monotonic()
    state, since = None, begun
    while True:
        now, seen = time.monotonic(), scenario.state() if with_state else {}
        if seen != state:
            state, since = seen, now
        found = {f"calls[{i}].{path}": v for path, v in differences(golden, scenario.as_recorded({**said, **seen})).items()}
        if not with_state or now - begun > SETTLE_S or now - since > QUIET_S and known.explains(name_of(scenario.line), found):
            return found
        time.sleep(0.02)


def play_classic(scenario, known):
    """Each call, and what it leaves."""
    found = {}
    for i in range(len(scenario.line["calls"])):
        found.update(settle(scenario, i, scenario.call(i), known))
    return found


def play_late(scenario, known):
    """All calls, as the kubelet admits a pod; then each container starts. What is left is seen at the end alone: HAMi
    patches with each call, we once."""
    found, last = {}, len(scenario.line["calls"]) - 1
    said = [scenario.call(i) for i in range(last + 1)]
    for i in range(last + 1):
        # Of several answers for one container the last is in the checkpoint.
        its = max(j for j in range(last + 1) if scenario.containers(j) == scenario.containers(i))
        it = scenario.start(i, {**said[its], "preferred": said[i]["preferred"]})
        if "response" in it:
            wait_until("the pod's patch", SETTLE_S, scenario.succeeded)
        found.update(settle(scenario, i, it, known, with_state=i == last))
    return found


def replay(node, line, known):
    """Differences of one scenario, by path."""
    scenario = Scenario(node, line)
    scenario.make()
    try:
        return play_late(scenario, known) if node.late else play_classic(scenario, known)
    finally:
        scenario.unmake()


def replay_group(build, known, key, group, binding):
    """All lines of one node and run, on one agent: [(line's name, differences)]."""
    folder = tempfile.mkdtemp(prefix="hg-", dir="/tmp")
    node = AllocateNode(build, folder, key[0], DESCRIPTIONS[key], binding)
    try:
        node.begin()
        return [(name_of(line), replay(node, line, known)) for line in group]
    finally:
        node.end()
        shutil.rmtree(folder, ignore_errors=True)


def replay_all(build, known, binding):
    """{key: a future of replay_group} of every group, side by side: they mostly wait."""
    with futures.ThreadPoolExecutor(len(GROUPS)) as pool:
        return {key: pool.submit(replay_group, build, known, key, group, binding) for key, group in GROUPS}
