"""A kubelet for the agent's tests, on grpcio: Registration server, DevicePlugin client, checkpoint, pod-resources."""
import atexit
import base64
import contextlib
import importlib
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures

import grpc
import pytest

from waiting import wait_until

REPO = pathlib.Path(__file__).resolve().parents[2]
RESOURCE = "hami.com/vgpu"


def load_messages():
    out = tempfile.mkdtemp(prefix="hm-pb-")
    proto = REPO / "src/kubelet/proto"
    subprocess.run(["protoc", f"-I{proto}", f"--python_out={out}", "device_plugin.proto", "pod_resources.proto"],
                   check=True)
    sys.path.insert(0, out)
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    return importlib.import_module("device_plugin_pb2"), importlib.import_module("pod_resources_pb2")


pb, pr = load_messages()


class Watch:
    """One ListAndWatch stream, read by a thread."""

    def __init__(self, stub):
        self.lists = queue.Queue()
        self.ended = threading.Event()
        self.call = stub(pb.Empty())
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for answer in self.call:
                self.lists.put(answer)
        except grpc.RpcError:
            pass
        self.ended.set()

    def next(self, seconds=20):
        return list(self.lists.get(timeout=seconds).devices)


class Plugin:
    """Client of a device plugin at a socket."""

    def __init__(self, path):
        self.channel = grpc.insecure_channel(f"unix:{path}", options=[
            ("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)])

    def unary(self, method, request, answer, **kwargs):
        call = self.channel.unary_unary(f"/v1beta1.DevicePlugin/{method}",
                                        request_serializer=type(request).SerializeToString,
                                        response_deserializer=answer.FromString)
        return call(request, timeout=kwargs.pop("timeout", 10), **kwargs)

    def options(self):
        return self.unary("GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions)

    def watch(self):
        return Watch(self.channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch",
                                               request_serializer=pb.Empty.SerializeToString,
                                               response_deserializer=pb.ListAndWatchResponse.FromString))

    def preferred(self, available, size, must=()):
        request = pb.PreferredAllocationRequest(container_requests=[pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size)])
        answer = self.unary("GetPreferredAllocation", request, pb.PreferredAllocationResponse)
        return list(answer.container_responses[0].deviceIDs)

    def allocate(self, *containers):
        request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=ids)
                                                         for ids in containers])
        return list(self.unary("Allocate", request, pb.AllocateResponse).container_responses)

    def pre_start(self, ids, timeout=30):
        self.unary("PreStartContainer", pb.PreStartContainerRequest(devices_ids=ids), pb.PreStartContainerResponse,
                   timeout=timeout)

    def close(self):
        self.channel.close()


class Kubelet:
    """Answers Register as the real one does: it connects back first. Keeps its folder over a restart."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.registered = queue.Queue()  # (monotonic seconds, RegisterRequest)
        self.refuse = None               # text: answer Register with an error
        self.resource = RESOURCE         # what is expected to be registered
        self.entries = []                # of the checkpoint
        self.server = None
        self.plugin = None
        self.stream = None
        self.healthy = []

    @property
    def socket(self):
        return self.folder / "kubelet.sock"

    def start(self):
        """As a real start: removes every socket in the folder, then makes its own."""
        for path in self.folder.iterdir():
            if path.is_socket():
                path.unlink()
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.Registration", {
            "Register": grpc.unary_unary_rpc_method_handler(self.register, pb.RegisterRequest.FromString,
                                                            pb.Empty.SerializeToString)})])
        assert self.server.add_insecure_port(f"unix:{self.socket}") != 0
        self.server.start()
        return time.monotonic()

    def stop(self):
        """As kill -9: the socket file stays, connections end."""
        if self.plugin:
            self.plugin.close()
        self.plugin = self.stream = None
        keep = self.socket.exists()
        if self.server:
            self.server.stop(None).wait()
        self.server = None
        if keep and not self.socket.exists():  # grpcio removes it, the real one does not
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
                s.bind(str(self.socket))

    def register(self, request, context):
        if self.refuse:
            context.abort(grpc.StatusCode.UNKNOWN, self.refuse)
        if self.plugin:
            self.plugin.close()  # the endpoint registered before is stopped
        plugin = Plugin(self.folder / request.endpoint)
        options = plugin.options()
        assert options.pre_start_required and options.get_preferred_allocation_available
        self.plugin, self.stream = plugin, plugin.watch()
        self.registered.put((time.monotonic(), request))
        return pb.Empty()

    def wait_registered(self, seconds=20):
        at, request = self.registered.get(timeout=seconds)
        assert request.version == "v1beta1" and request.resource_name == self.resource
        return at

    def devices(self, seconds=20):
        self.healthy = self.stream.next(seconds)
        return self.healthy

    # The pods' side

    def admit(self, pod_uid, container, ids):
        """Allocate, and the checkpoint entry that a real kubelet writes of its answer."""
        answer = self.plugin.allocate(ids)[0]
        self.entries.append({"PodUID": pod_uid, "ContainerName": container, "ResourceName": self.resource,
                             "DeviceIDs": {"0": list(ids)},
                             "AllocResp": base64.b64encode(answer.SerializeToString()).decode()})
        self.write_checkpoint()
        return answer

    def forget(self, pod_uid):
        self.entries = [e for e in self.entries if e["PodUID"] != pod_uid]
        self.write_checkpoint()

    def write_checkpoint(self):
        text = json.dumps({"Data": {"PodDeviceEntries": self.entries, "RegisteredDevices": {self.resource: []}},
                           "Checksum": 1})
        path = self.folder / "kubelet_internal_checkpoint"
        path.with_suffix(".tmp").write_text(text)
        os.rename(path.with_suffix(".tmp"), path)


def number_of(answer):
    """N of the one CDI name hami.io/vgpu=v.N."""
    (device,) = answer.cdi_devices
    assert device.name.startswith("hami.io/vgpu=v.")
    return int(device.name.rsplit(".", 1)[1])


class PodResources:
    """The kubelet's pod-resources v1 List at a socket."""

    def __init__(self, path):
        self.pods = []  # (namespace, pod, container, ids)
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1.PodResourcesLister", {
            "List": grpc.unary_unary_rpc_method_handler(self.list, pr.ListPodResourcesRequest.FromString,
                                                        pr.ListPodResourcesResponse.SerializeToString)})])
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def list(self, _request, _context):
        return pr.ListPodResourcesResponse(pod_resources=[
            pr.PodResources(name=pod, namespace=ns, containers=[pr.ContainerResources(name=c, devices=[
                pr.ContainerDevices(resource_name=RESOURCE, device_ids=ids)])]) for ns, pod, c, ids in self.pods])

    def stop(self):
        self.server.stop(None).wait()


class Agent:
    """hami-device-plugin with every path in a folder of the test's own."""

    def __init__(self, build, folder, kubelet):
        self.build, self.folder, self.kubelet = build, pathlib.Path(folder), kubelet
        self.state, self.cdi = self.folder / "state", self.folder / "cdi"
        self.nvml = self.folder / "nvml"
        self.log_path = self.folder / "agent.log"
        self.process = None
        library = self.folder / "libvgpu.so"
        library.write_bytes(b"\x7fELF of the test")
        self.library = library
        spec = {"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
                "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void", "DRIVER=1"],
                                   "mounts": [{"hostPath": "/bin/true", "containerPath": "/usr/lib64/libcuda.so.1",
                                               "options": ["ro", "bind"]}],
                                   "deviceNodes": [{"path": "/dev/null", "hostPath": "/dev/null"}]},
                "devices": [{"name": str(i), "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{i}",
                                                                                 "hostPath": "/dev/zero"}]}}
                            for i in range(16)]}
        self.driver_spec = self.folder / "nvidia.json"
        self.driver_spec.write_text(json.dumps(spec))
        self.set_nvml()

    def set_nvml(self, ready=1, cards=2, mib=16384, lost=-1, hang=0, links=0, back=0):
        temp = self.folder / "nvml.tmp"
        temp.write_text(f"ready {ready} cards {cards} mib {mib} lost {lost} hang {hang} links {links} back {back}\n")
        os.rename(temp, self.nvml)

    def arguments(self, flags):
        return [str(self.build / "bin/hami-device-plugin"), f"--kubelet-socket={self.kubelet.socket}",
                f"--state-dir={self.state}", f"--cdi-dir={self.cdi}", f"--nvidia-cdi-spec={self.driver_spec}",
                f"--pod-resources-socket={self.folder / 'pods.sock'}", f"--libvgpu={self.library}",
                f"--nvml-library={self.build / 'tests/libfile_nvml.so'}", "--v=4", *flags]

    def start(self, *flags, env=()):
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(self.arguments(flags), stderr=log, stdout=log,
                                        env={**os.environ, "FILE_NVML": str(self.nvml),
                                             "HOOK_PATH": str(self.folder / "hook"), **dict(env)})
        log.close()
        return time.monotonic()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self, how=signal.SIGTERM):
        """The exit status and how long it took."""
        begun = time.monotonic()
        self.process.send_signal(how)
        status = self.process.wait(timeout=10)
        return status, time.monotonic() - begun

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def names(self):
        """Names of the pods that the claims show; not of those that are being written."""
        return {line.split("=", 1)[1] for p in (self.state / "claims").iterdir() if p.name.isdigit()
                for line in p.read_text().splitlines() if line.startswith("pod_name=")}

    def leftovers(self):
        """What lies about for containers: claims, folders, specs."""
        found = []
        for folder, pattern in ((self.state / "claims", "*"), (self.state / "alloc", "*"), (self.cdi, "hami-vgpu-*")):
            found += [str(p.relative_to(self.folder)) for p in folder.glob(pattern)] if folder.exists() else []
        return found


UUIDS = [f"GPU-00000000-0000-0000-0000-0000000000{i:02d}" for i in range(16)]


def ids(card, *numbers):
    return [f"{UUIDS[card]}::{n}" for n in numbers]


def spec_of(agent, number):
    return json.loads((agent.cdi / f"hami-vgpu-v.{number}.json").read_text())


def code_of(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return caught.value.code().name, caught.value.details()
