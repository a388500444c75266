"""What the agent and the rpc server are measured with: the kubelet's messages for Python, a stand-in for the kubelet's
registration, a bare grpcio server, a client that times calls."""
import concurrent.futures
import functools
import importlib
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import grpc

REPO = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = "/v1beta1.DevicePlugin/"


@functools.lru_cache(None)
def messages():
    """The module that protoc makes of our own device_plugin.proto."""
    folder = tempfile.mkdtemp(prefix="hmb-pb-")
    proto = REPO / "src/kubelet/proto"
    subprocess.run(["protoc", f"-I{proto}", f"--python_out={folder}", str(proto / "device_plugin.proto")], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("device_plugin_pb2")


def unary(path, handler, request_type):
    rpc = grpc.unary_unary_rpc_method_handler(handler, request_deserializer=request_type.FromString,
                                              response_serializer=lambda m: m.SerializeToString())
    service, _, method = path.strip("/").partition("/")
    return grpc.method_handlers_generic_handler(service, {method: rpc})


class Registry:
    """kubelet.sock: takes Register calls and says when they came."""

    def __init__(self, folder):
        self.calls = []
        self.came = threading.Event()
        pb = messages()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((unary("/v1beta1.Registration/Register", self.register, pb.RegisterRequest),))
        self.server.add_insecure_port(f"unix:{folder}/kubelet.sock")
        self.server.start()

    def register(self, request, _context):
        self.calls.append((time.monotonic(), request))
        self.came.set()
        return messages().Empty()

    def wait(self, seconds=20):
        """The moment of the first Register call, and the plugin's socket name."""
        if not self.came.wait(seconds):
            raise RuntimeError(f"no registration within {seconds} s")
        return self.calls[0][0], self.calls[0][1].endpoint

    def stop(self):
        self.server.stop(None).wait()


def serve_grpcio(socket, ready):
    """The body of the process of a bare grpcio server."""
    pb = messages()
    answer = pb.AllocateResponse()
    answer.container_responses.add()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((unary(PLUGIN + "Allocate", lambda _r, _c: answer, pb.AllocateRequest),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    ready.set()
    server.wait_for_termination()


def start_grpcio(socket):
    spawn = multiprocessing.get_context("spawn")  # grpcio does not survive a fork
    ready = spawn.Event()
    process = spawn.Process(target=serve_grpcio, args=(str(socket), ready), daemon=True)
    process.start()
    if not ready.wait(20):
        raise RuntimeError("the grpcio server did not start")
    return process


class Caller:
    """One channel to a plugin's socket."""

    def __init__(self, socket):
        pb = messages()
        self.channel = grpc.insecure_channel(f"unix:{socket}")
        grpc.channel_ready_future(self.channel).result(timeout=20)
        serialize = lambda m: m.SerializeToString()  # noqa: E731
        self.allocate = self.channel.unary_unary(PLUGIN + "Allocate", serialize, pb.AllocateResponse.FromString)
        self.list_and_watch = self.channel.unary_stream(PLUGIN + "ListAndWatch", serialize,
                                                        pb.ListAndWatchResponse.FromString)

        self.start = self.channel.unary_unary(PLUGIN + "PreStartContainer", serialize, pb.PreStartContainerResponse.FromString)

    def allocate_set(self, ids):
        request = messages().AllocateRequest()
        request.container_requests.add().devices_ids.extend(ids)
        return self.allocate(request, timeout=10)

    def pre_start(self, ids):
        self.start(messages().PreStartContainerRequest(devices_ids=ids), timeout=30)

    def allocate_times_ms(self, ids, calls):
        """The time of each of so many Allocate calls, the ids in turn."""
        pb = messages()
        requests = []
        for device in ids:
            request = pb.AllocateRequest()
            request.container_requests.add().devices_ids.append(device)
            requests.append(request)
        times = []
        for i in range(calls):
            start = time.perf_counter()
            self.allocate(requests[i % len(requests)], timeout=10)
            times.append((time.perf_counter() - start) * 1000)
        return times

    def close(self):
        self.channel.close()
