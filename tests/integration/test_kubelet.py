"""src/kubelet against grpcio: a device plugin served to a kubelet, and our clients of Registration and pod-resources."""
import contextlib
import queue
import socket
import subprocess
import threading
import time
from concurrent import futures

import grpc
import pytest
from kubelet_peer import Plugin, pb, pr
from simkubelet_peer import BUILD

PROGRAM = BUILD / "tests/kubelet_program"


class Server:
    def __init__(self, path):
        self.process = subprocess.Popen([str(PROGRAM), "serve", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.expect("serving 1")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def expect(self, want, seconds=10):
        line = self.lines.get(timeout=seconds)
        assert line == want or line.startswith(want + " "), line

    def devices(self, count):
        self.process.stdin.write(f"devices {count}\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


@pytest.fixture
def server(short_tmp):
    it = Server(short_tmp / "p.sock")
    yield it
    it.close()


@pytest.fixture
def plugin(server, short_tmp):
    it = Plugin(short_tmp / "p.sock")
    yield it
    it.close()


def test_options_ask_for_both(plugin):
    got = plugin.options()
    assert got.pre_start_required and got.get_preferred_allocation_available


def test_the_list_is_sent_at_once_and_after_each_change(server, plugin):
    watch = plugin.watch()
    assert watch.next() == [], "before the first set: an empty list"
    server.expect("watchers 1")
    server.devices(3)
    devices = watch.next()
    assert [d.ID[-5:] for d in devices] == ["00000", "00001", "00002"]
    assert [d.health for d in devices] == ["Healthy", "Unhealthy", "Healthy"]
    assert [[n.ID for n in d.topology.nodes] for d in devices] == [[], [1], [1]]
    second = plugin.watch()
    assert second.next() == devices
    server.expect("devices 3")
    server.expect("watchers 2")
    watch.call.cancel()
    server.expect("watchers 1")
    server.devices(1)
    assert len(second.next()) == 1


def test_sixteen_thousand_devices(server, plugin):
    watch = plugin.watch()
    watch.next()
    server.expect("watchers 1")
    start = time.monotonic()
    server.devices(16000)
    assert len(watch.next()) == 16000
    assert time.monotonic() - start < 5
    server.expect("devices 16000")
    server.devices(80000)
    line = server.lines.get(timeout=10)
    assert line.startswith("refused the list of 80000 devices takes ") and "the kubelet accepts 4194304" in line
    assert len(plugin.watch().next()) == 16000, "the list stays as it was"


def test_preferred(server, plugin):
    assert plugin.preferred(["a", "b", "c"], 2, ["b"]) == ["a", "b"]
    server.expect("preferred available=3 must=1 size=2")


def test_allocate_answers_each_container(plugin):
    one, two = plugin.allocate(["x", "y"], ["z"])
    assert ({e.key: e.value for e in one.envs}, {e.key: e.value for e in two.envs}) == ({"FIRST": "x"}, {"FIRST": "z"})
    assert (one.mounts[0].container_path, one.mounts[0].host_path, one.mounts[0].read_only) == ("/c", "/h", True)
    assert (one.devices[0].container_path, one.devices[0].host_path, one.devices[0].permissions) == ("/dev/x", "/dev/null", "rw")
    assert [(a.key, a.value) for a in one.annotations] == [("k", "v")]
    assert [d.name for d in one.cdi_devices] == ["hami.io/vgpu=v.7"]


def test_pre_start(server, plugin):
    plugin.pre_start(["now"])
    start = time.monotonic()
    plugin.pre_start(["later"])
    assert time.monotonic() - start >= 0.04
    with pytest.raises(grpc.RpcError) as e:
        plugin.pre_start(["err"])
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.UNAVAILABLE, "slot is held by ä 100%")
    with pytest.raises(grpc.RpcError) as e:
        plugin.pre_start(["never"], timeout=0.3)
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.expect("gone")
    plugin.pre_start(["now"])


def test_an_unanswered_call_and_a_stream_at_the_servers_end(server, plugin):
    watch = plugin.watch()
    watch.next()
    errors = []

    def call():
        try:
            plugin.pre_start(["never"])
        except grpc.RpcError as e:
            errors.append(e.code())
    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.1)
    server.process.stdin.close()
    assert server.process.wait(10) == 0
    thread.join(10)
    assert errors == [grpc.StatusCode.UNAVAILABLE]
    assert watch.ended.wait(10)


@pytest.mark.parametrize("method, request_bytes, text", [
    ("Allocate", b"", "Allocate: 0 container requests in one call, 1 to 64 are taken"),
    ("Allocate", b"\xff\xff", "Allocate: the 2 bytes are no AllocateRequest"),
    ("Allocate", pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=["a b"])]).SerializeToString(),
     "Allocate: devices_ids: id 0 is not 1 to 253 printable characters"),
    ("GetPreferredAllocation", pb.PreferredAllocationRequest(container_requests=[
        pb.ContainerPreferredAllocationRequest(available_deviceIDs=["a"], allocation_size=2)]).SerializeToString(),
     "GetPreferredAllocation: allocation_size is 2 with 1 available ids"),
    ("PreStartContainer", b"\x0a\x05ab", "PreStartContainer: the 4 bytes are no PreStartContainerRequest"),
])
def test_bad_requests_are_refused_by_name(plugin, method, request_bytes, text):
    call = plugin.channel.unary_unary(f"/v1beta1.DevicePlugin/{method}")
    with pytest.raises(grpc.RpcError) as e:
        call(request_bytes, timeout=5)
    assert e.value.details() == text


# --- our clients ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def grpc_server(path, service, **methods):
    """methods: name=(function, request type, answer type)."""
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {
        name: grpc.unary_unary_rpc_method_handler(fn, request.FromString, answer.SerializeToString)
        for name, (fn, request, answer) in methods.items()}),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(None)


def program(*words):
    return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=30, check=False)


def test_register(short_tmp):
    seen = []

    def register(request, _context):
        seen.append(request)
        return pb.Empty()
    with grpc_server(short_tmp / "k.sock", "v1beta1.Registration", Register=(register, pb.RegisterRequest, pb.Empty)):
        done = program("register", short_tmp / "k.sock", "hami-vgpu.sock", "hami.com/vgpu")
    assert (done.returncode, done.stdout) == (0, "registered: \n")
    (request,) = seen
    assert (request.version, request.endpoint, request.resource_name) == ("v1beta1", "hami-vgpu.sock", "hami.com/vgpu")
    assert request.options.pre_start_required and request.options.get_preferred_allocation_available


def test_a_refused_registration_carries_the_kubelets_text(short_tmp):
    def register(_request, context):
        context.abort(grpc.StatusCode.UNKNOWN, 'the ResourceName "badname" is invalid')
    with grpc_server(short_tmp / "k.sock", "v1beta1.Registration", Register=(register, pb.RegisterRequest, pb.Empty)):
        done = program("register", short_tmp / "k.sock", "e.sock", "badname")
    assert done.returncode == 1
    assert done.stdout == 'invalid: kubelet refused the registration: UNKNOWN: the ResourceName "badname" is invalid\n'


def test_dials_that_fail_tell_what_to_do(short_tmp):
    done = program("register", short_tmp / "none.sock", "e.sock", "a.b/c")
    assert done.returncode == 1 and done.stdout.startswith("not found: register with the kubelet: ")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(short_tmp / "stale.sock"))
    done = program("register", short_tmp / "stale.sock", "e.sock", "a.b/c")
    assert done.returncode == 1 and done.stdout.startswith("try again: register with the kubelet: ")
    done = program("list", short_tmp / "stale.sock", "a.b/c")
    assert done.returncode == 1 and done.stdout.startswith("try again: pod-resources: ")


def pod_resources(*pods):
    return pr.ListPodResourcesResponse(pod_resources=pods)


def devices(resource, *ids):
    return pr.ContainerDevices(resource_name=resource, device_ids=ids)


def serve_list(path, answer):
    return grpc_server(path, "v1.PodResourcesLister", List=(answer, pr.ListPodResourcesRequest, pr.ListPodResourcesResponse))


def test_list_joins_a_containers_entries_and_leaves_out_other_resources_ids(short_tmp):
    answer = pod_resources(
        pr.PodResources(name="late", namespace="default", containers=[
            pr.ContainerResources(name="c", devices=[devices("hami.com/vgpu", "g1::1"), devices("other/x", "o"), devices("hami.com/vgpu", "g1::0")]),
            pr.ContainerResources(name="none")]),
        pr.PodResources(name="bare", namespace="default"),
        pr.PodResources(name="other", namespace="n", containers=[pr.ContainerResources(name="c", devices=[devices("hami.com/vgpu", "g0::0")])]))
    with serve_list(short_tmp / "k.sock", lambda _r, _c: answer):
        done = program("list", short_tmp / "k.sock", "hami.com/vgpu")
    assert (done.returncode, done.stdout) == (0, "default/late/c g1::1 g1::0\ndefault/late/none\nn/other/c g0::0\n")


@pytest.mark.parametrize("code, text, want", [
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit", "try again: pod-resources: RESOURCE_EXHAUSTED: rejected by rate limit\n"),
    (grpc.StatusCode.UNIMPLEMENTED, "no", "input/output error: pod-resources: UNIMPLEMENTED: no\n")])
def test_list_refused(short_tmp, code, text, want):
    def fail(_request, context):
        context.abort(code, text)
    with serve_list(short_tmp / "k.sock", fail):
        done = program("list", short_tmp / "k.sock", "hami.com/vgpu")
    assert (done.returncode, done.stdout) == (1, want)


def test_list_with_hostile_names(short_tmp):
    answer = pod_resources(pr.PodResources(name="a\nb", namespace="n", containers=[pr.ContainerResources(name="c", devices=[devices("r/x", "i")])]))
    with serve_list(short_tmp / "k.sock", lambda _r, _c: answer):
        done = program("list", short_tmp / "k.sock", "r/x")
    assert done.returncode == 1 and "pod-resources: pod 0: a name is not 1 to 253 printable characters" in done.stdout


def test_many_pods_are_received(short_tmp):
    """Beyond 4 MiB, which is what others' default would refuse."""
    pods = [pr.PodResources(name=f"pod-{i}", namespace="default", containers=[
        pr.ContainerResources(name="c", devices=[devices("r/x", f"GPU-03f69c50-207a-2038-9b45-23cac89cb67a::{i}-{'x' * 150}")])]) for i in range(25000)]
    with serve_list(short_tmp / "k.sock", lambda _r, _c: pod_resources(*pods)):
        done = program("list", short_tmp / "k.sock", "r/x")
    assert done.returncode == 0 and done.stdout.count("\n") == 25000
