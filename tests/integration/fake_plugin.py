"""A device plugin on grpcio for the tests of hami-simkubelet: the same devices and choices as the cluster's fake plugin,
and the same account of what is called (tests/e2e/golden/kubelet-calls.json)."""
import ctypes
import os
import pathlib
import struct
import threading
import time
from concurrent import futures

import grpc
from kubelet_peer import pb

IN_CREATE, IN_DELETE = 0x100, 0x200


class FakePlugin:
    def __init__(self, folder, resource="hami.com/vgpu", cards=2, slots=4, answer=None, sock="fake.sock", numa=0):
        self.folder = pathlib.Path(folder)
        self.resource, self.sock, self.numa = resource, sock, numa
        self.ids = [f"g{g}::{s}" for g in range(cards) for s in range(slots)]
        self.answer = answer or (lambda ids: pb.ContainerAllocateResponse())
        self.calls = []
        self.errors = {}  # method: text
        self.delays = {}  # method: seconds
        self.failed = 0
        self.server = None
        self.stop_watching = False
        self.watch_fd = None
        self.changed = threading.Condition()

    # --- the service --------------------------------------------------------------------------------------------
    def note(self, call):
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()

    def fail_or_wait(self, method, context):
        time.sleep(self.delays.get(method, 0))
        if method in self.errors:
            self.failed += 1
            context.abort(grpc.StatusCode.INTERNAL, self.errors[method])

    def options(self, _request, _context):
        self.note({"call": "GetDevicePluginOptions"})
        return pb.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)

    def list_and_watch(self, _request, context):
        self.note({"call": "ListAndWatch"})
        ended = threading.Event()
        context.add_callback(ended.set)
        topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=self.numa)])
        yield pb.ListAndWatchResponse(devices=[pb.Device(ID=i, health="Healthy", topology=topology) for i in self.ids])
        ended.wait()
        self.note({"end": "ListAndWatch"})

    def preferred(self, request, context):
        (one,) = request.container_requests
        self.note({"call": "GetPreferredAllocation", "available": sorted(one.available_deviceIDs),
                   "must": sorted(one.must_include_deviceIDs), "size": one.allocation_size})
        self.fail_or_wait("GetPreferredAllocation", context)
        ids = sorted(one.available_deviceIDs)[:one.allocation_size]
        return pb.PreferredAllocationResponse(container_responses=[pb.ContainerPreferredAllocationResponse(deviceIDs=ids)])

    def allocate(self, request, context):
        (one,) = request.container_requests
        self.note({"call": "Allocate", "ids": sorted(one.devices_ids)})
        self.fail_or_wait("Allocate", context)
        return pb.AllocateResponse(container_responses=[self.answer(sorted(one.devices_ids))])

    def pre_start(self, request, context):
        self.note({"call": "PreStartContainer", "ids": sorted(request.devices_ids),
                   "deadline": f"{round(context.time_remaining())}s"})
        self.fail_or_wait("PreStartContainer", context)
        return pb.PreStartContainerResponse()

    def serve(self):
        path = self.folder / self.sock
        path.unlink(missing_ok=True)

        def unary(fn, request, answer):
            return grpc.unary_unary_rpc_method_handler(fn, request.FromString, answer.SerializeToString)
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {
            "GetDevicePluginOptions": unary(self.options, pb.Empty, pb.DevicePluginOptions),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self.list_and_watch, pb.Empty.FromString, pb.ListAndWatchResponse.SerializeToString),
            "GetPreferredAllocation": unary(self.preferred, pb.PreferredAllocationRequest, pb.PreferredAllocationResponse),
            "Allocate": unary(self.allocate, pb.AllocateRequest, pb.AllocateResponse),
            "PreStartContainer": unary(self.pre_start, pb.PreStartContainerRequest, pb.PreStartContainerResponse),
        }),))
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def register(self, version="v1beta1", resource=None, endpoint=None, timeout=15):
        """Register's answer: None, or the error's text. A refused dial is tried again."""
        self.note({"call": "Register"})
        request = pb.RegisterRequest(version=version, endpoint=endpoint or self.sock, resource_name=resource or self.resource)
        end = time.monotonic() + timeout
        while True:
            with grpc.insecure_channel(f"unix:{self.folder}/kubelet.sock", [("grpc.use_local_subchannel_pool", 1)]) as channel:
                call = channel.unary_unary("/v1beta1.Registration/Register", pb.RegisterRequest.SerializeToString, pb.Empty.FromString)
                try:
                    call(request, timeout=timeout)
                    return None
                except grpc.RpcError as e:
                    if e.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > end:
                        return e.details()
            time.sleep(0.005)

    # --- the folder ---------------------------------------------------------------------------------------------
    def watch_folder(self):
        """As a plugin should: listen and register anew when kubelet.sock is made."""
        libc = ctypes.CDLL(None, use_errno=True)
        self.watch_fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.watch_fd, os.fsencode(str(self.folder)), IN_CREATE | IN_DELETE) >= 0
        threading.Thread(target=self.read_folder, daemon=True).start()

    def read_folder(self):
        while not self.stop_watching:
            try:
                data = os.read(self.watch_fd, 65536)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            except OSError:
                return
            at = 0
            while at < len(data):
                _, mask, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
                at += 16 + size
                self.on_file(mask, name)

    def on_file(self, mask, name):
        if mask & IN_DELETE and name in ("kubelet.sock", self.sock):
            self.note({"file": f"REMOVE {name}"})
        if mask & IN_CREATE and name == "kubelet.sock":
            self.note({"file": "CREATE kubelet.sock"})
            self.server.stop(None)
            self.serve()
            threading.Thread(target=self.register, daemon=True).start()

    def wait_calls(self, count, seconds=20):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.calls) >= count, seconds), self.calls
            return list(self.calls)

    def take(self, settle=0.15):
        """The calls since the last take, once nothing more comes."""
        while True:
            with self.changed:
                count = len(self.calls)
            time.sleep(settle)
            with self.changed:
                if len(self.calls) == count:
                    calls, self.calls = self.calls, []
                    return calls

    def close(self):
        self.stop_watching = True
        if self.server is not None:
            self.server.stop(None)
        if self.watch_fd is not None:
            os.close(self.watch_fd)
