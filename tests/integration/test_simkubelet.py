"""hami-simkubelet: its calls are the real kubelet's, its containers are containers, and the machine stays as it was."""
import base64
import hashlib
import concurrent.futures
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time

import grpc
import pytest
from fake_plugin import FakePlugin
from kubelet_peer import pb, pr, wait_until
from simkubelet_peer import REPO, SimKubelet, container, pod

GOLDEN = REPO / "tests/e2e/golden"
SLEEP = "exec sleep 1000"


def cannot_make_containers():
    return subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "-m", "-p", "-f", "true"],
                          capture_output=True, check=False).returncode != 0


pytestmark = pytest.mark.skipif(cannot_make_containers(), reason="no namespaces for this user")


@pytest.fixture
def node(short_tmp):
    it = SimKubelet(short_tmp / "k", "--readmit-ms=300", "--restart-ms=50").wait_up()
    yield it
    it.close()


@pytest.fixture
def plugin(node):
    it = FakePlugin(node.dir / "device-plugins")
    it.watch_folder()
    it.serve()
    assert it.register() is None
    assert node.ask(cmd="wait", resource="hami.com/vgpu", count=8)["ok"]
    yield it
    it.close()


def named(prefix):
    """An answer with a CDI name of its own for each call."""
    numbers = iter(range(1, 1000))
    return lambda ids: pb.ContainerAllocateResponse(cdi_devices=[pb.CDIDevice(name=f"hami.io/vgpu={prefix}.{next(numbers)}")])


def write_cdi(folder, name, **edits):
    spec = {"cdiVersion": "0.6.0", "kind": "hami.io/vgpu", "devices": [{"name": name, "containerEdits": edits}]}
    (pathlib.Path(folder) / f"hami-vgpu-{name}.json").write_text(json.dumps(spec))


def run_golden_pods(node, plugin):
    """What record.sh did on the real cluster."""
    made = {"register": plugin.take()}
    assert node.run(pod("solo", [container(script=SLEEP, devices=1)], restart="Always"), wait="running")[-1]["ok"]
    made["one-pod"] = plugin.take()
    assert node.run(pod("many", [container("a", SLEEP, 1), container("b", SLEEP, 1)],
                        [container("i1", devices=2), container("side", SLEEP, 1, restartPolicy="Always"),
                         container("i2", devices=1)], restart="Always"), wait="running")[-1]["ok"]
    made["init-sidecar-two"] = plugin.take()
    assert node.ask(cmd="kill", name="solo")["ok"]
    made["container-restart"] = plugin.take(0.4)
    assert node.ask(cmd="kubelet-restart")["ok"]
    plugin.wait_calls(7)
    made["kubelet-restart"] = plugin.take(0.5)
    assert node.run(pod("late", [container(script=SLEEP, devices=2)]), wait="running")[-1]["ok"]
    made["pod-after-restart"] = plugin.take()
    plugin.errors["PreStartContainer"] = "not today"
    assert node.run(pod("erring", [container(script=SLEEP, devices=1)]), wait="none")[-1]["ok"]
    wait_until("two tries failed", 10, lambda: plugin.failed == 2)
    plugin.errors.clear()
    wait_until("the pod runs at last", 10, lambda: node.pod("erring")["phase"] == "Running")
    made["prestart-error"] = plugin.take()
    return made


def without_races(calls):
    """In the real one, too, ListAndWatch may begin before or after GetDevicePluginOptions was answered; a stream's end is
    told by gRPC some time after it."""
    return [c for c in calls if "end" not in c]


def test_its_calls_are_those_of_the_real_kubelet(short_tmp):
    node = SimKubelet(short_tmp / "k", "--readmit-ms=300", "--restart-ms=50", "--retry-ms=400").wait_up()
    plugin = FakePlugin(node.dir / "device-plugins")
    try:
        plugin.watch_folder()
        plugin.serve()
        assert plugin.register() is None
        made = run_golden_pods(node, plugin)
    finally:
        plugin.close()
        node.close()
    real = json.loads((GOLDEN / "kubelet-calls.json").read_text())
    assert set(made) == set(real)
    for name, calls in real.items():
        assert without_races(made[name]) == without_races(calls), name


def test_the_golden_file_is_the_recorded_log():
    done = subprocess.run([sys.executable, str(GOLDEN / "calls.py"), str(GOLDEN / "kubelet-calls.log")],
                          capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads((GOLDEN / "kubelet-calls.json").read_text())


def checkpoint(node):
    return json.loads((node.dir / "device-plugins/kubelet_internal_checkpoint").read_text())


def shape(value):
    """Keys and kinds, no values."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    return [shape(v) for v in value[:1]] if isinstance(value, list) else type(value).__name__


def test_its_checkpoint_is_the_real_kubelets(node, plugin):
    plugin.answer = named("g")
    real = json.loads((GOLDEN / "checkpoint-empty.json").read_text())
    mine = checkpoint(node)
    assert shape(mine) == shape(real) and mine["Data"]["PodDeviceEntries"] is None
    assert sorted(mine["Data"]["RegisteredDevices"]["hami.com/vgpu"]) == sorted(real["Data"]["RegisteredDevices"]["hami.com/vgpu"])
    for number in range(1, 6):
        write_cdi(node.dir / "cdi", f"g.{number}", env=[f"N={number}"])
    node.run(pod("many", [container("a", SLEEP, 1), container("b", SLEEP, 1)],
                 [container("i1", devices=2), container("side", SLEEP, 1, restartPolicy="Always"), container("i2", devices=1)]),
             wait="running")
    real = json.loads((GOLDEN / "checkpoint-init-sidecar-two.json").read_text())["Data"]["PodDeviceEntries"]
    mine = checkpoint(node)
    path = node.dir / "device-plugins/kubelet_internal_checkpoint"
    assert path.stat().st_mode & 0o777 == 0o600 and path.read_text().count("\n") == 0
    entries = mine["Data"]["PodDeviceEntries"]
    assert shape(entries[0]) == shape(next(e for e in real if e["ContainerName"] == "i1"))
    assert [e["ContainerName"] for e in entries] == ["i1", "side", "i2", "a", "b"]
    assert entries[0]["DeviceIDs"] == {"0": ["g0::0", "g0::1"]}
    answer = pb.ContainerAllocateResponse.FromString(base64.b64decode(entries[4]["AllocResp"]))
    assert answer.cdi_devices[0].name == "hami.io/vgpu=g.5"


def test_an_ended_pods_checkpoint_entry_stays_until_the_next_allocation(node, plugin):
    def names():
        return [e["AllocResp"] for e in checkpoint(node)["Data"]["PodDeviceEntries"] or []]
    assert node.run(pod("p", [container(devices=1)]))[-1]["ok"]
    assert names() == [""], "an empty answer is one too"
    node.ask(cmd="delete", name="p")
    time.sleep(0.1)
    assert names() == [""]
    assert node.run(pod("q", [container(devices=2)]))[-1]["ok"]
    (entry,) = checkpoint(node)["Data"]["PodDeviceEntries"]
    assert len(entry["DeviceIDs"]["0"]) == 2


def listed(node):
    with grpc.insecure_channel(f"unix:{node.dir}/pod-resources/kubelet.sock") as channel:
        call = channel.unary_unary("/v1.PodResourcesLister/List", pr.ListPodResourcesRequest.SerializeToString,
                                   pr.ListPodResourcesResponse.FromString)
        return call(pr.ListPodResourcesRequest(), timeout=5)


def test_pod_resources_list_has_no_init_containers(node, plugin):
    node.run(pod("many", [container("a", SLEEP, 2)], [container("i1", devices=2), container("side", SLEEP, 1, restartPolicy="Always")]),
             wait="running")
    (one,) = listed(node).pod_resources
    assert (one.namespace, one.name, [c.name for c in one.containers]) == ("default", "many", ["side", "a"])
    assert all(len(d.device_ids) == 1 for c in one.containers for d in c.devices)
    assert len(one.containers[1].devices) == 2
    codes = []
    deadline = time.monotonic() + 20
    while not codes and time.monotonic() < deadline:  # a slow machine may need more than one try to be too fast
        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            tries = [pool.submit(listed, node) for _ in range(30)]
        codes = [t.exception().code() for t in tries if t.exception() is not None]
    assert codes and set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}, "100 calls/s, a burst of 10"
    node.ask(cmd="delete", name="many")
    time.sleep(0.2)
    assert not listed(node).pod_resources


def test_registration_is_refused_as_the_kubelet_refuses(node):
    plugin = FakePlugin(node.dir / "device-plugins")
    try:
        assert plugin.register(version="v1alpha1") == (
            'requested API version "v1alpha1" is not supported by kubelet. Supported version is ["v1beta1"]')
        assert plugin.register(resource="badname") == 'the ResourceName "badname" is invalid'
    finally:
        plugin.close()


def test_an_endpoint_that_nobody_serves(short_tmp):
    node = SimKubelet(short_tmp / "k", "--dial-ms=300").wait_up()
    plugin = FakePlugin(node.dir / "device-plugins")
    try:
        start = time.monotonic()
        assert plugin.register() == "failed to dial device plugin: context deadline exceeded"
        assert time.monotonic() - start >= 0.3
    finally:
        plugin.close()
        node.close()


@pytest.mark.parametrize("method, text", [
    ("Allocate", "Pod was rejected: Allocate failed due to rpc error: code = Internal desc = no, which is unexpected"),
    ("GetPreferredAllocation", "Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed with "
                               "err: rpc error: code = Internal desc = no, which is unexpected")])
def test_an_error_rejects_the_pod_for_good(node, plugin, method, text):
    plugin.errors[method] = "no"
    events = node.run(pod("p", [container(devices=1)]))
    assert events[-1] == {"done": True, "ok": False, "phase": "Failed"}
    assert node.pod("p")["reason"] == "UnexpectedAdmissionError" and node.pod("p")["message"] == text
    plugin.errors.clear()
    assert node.run(pod("q", [container(devices=8)]))[-1]["ok"], "nothing of it stays allocated"


def test_prestart_beyond_its_deadline_is_tried_again(short_tmp):
    node = SimKubelet(short_tmp / "k", "--prestart-ms=300", "--retry-ms=100").wait_up()
    plugin = FakePlugin(node.dir / "device-plugins")
    try:
        plugin.serve()
        assert plugin.register() is None
        plugin.delays["PreStartContainer"] = 1
        node.run(pod("p", [container(devices=1)]), wait="none")
        wait_until("the deadline passed", 5, lambda: "code = DeadlineExceeded desc = context deadline exceeded"
                   in node.container("p")["message"])
        plugin.delays.clear()
        wait_until("it ran", 5, lambda: node.pod("p")["phase"] == "Succeeded")
    finally:
        plugin.close()
        node.close()


def test_pods_wait_for_devices(node, plugin):
    assert node.run(pod("big", [container(script=SLEEP, devices=8)]), wait="running")[-1]["ok"]
    node.run(pod("next", [container(devices=1)]), wait="none")
    time.sleep(0.2)
    assert node.pod("next")["phase"] == "Pending"
    assert node.run(pod("bare", [container()]))[-1]["ok"], "others go on"
    node.ask(cmd="delete", name="big")
    wait_until("next ran", 5, lambda: node.pod("next")["phase"] == "Succeeded")


def test_cdi_wins_over_the_pod_and_a_missing_spec_is_waited_for(short_tmp):
    node = SimKubelet(short_tmp / "k", "--retry-ms=100").wait_up()
    plugin = FakePlugin(node.dir / "device-plugins", answer=named("x"))
    try:
        plugin.serve()
        assert plugin.register() is None
        script = "echo $A $B $C; cat /etc/ld.so.preload; ls -l /dev/hami0 | cut -c1; cat /run/hami/deep/file; echo x > /run/hami/deep/file || echo read-only"
        node.run(pod("p", [container(script=script, devices=1, env={"A": "pod", "C": "pod"})]), wait="none")
        wait_until("no spec", 5, lambda: node.container("p")["message"].endswith(
            "CDI device injection failed: unresolvable CDI devices hami.io/vgpu=x.1"))
        (short_tmp / "preload").write_text("")
        (short_tmp / "file").write_text("content\n")
        mounts = [{"hostPath": str(short_tmp / "preload"), "containerPath": "/etc/ld.so.preload", "options": ["ro"]},
                  {"hostPath": str(short_tmp / "file"), "containerPath": "/run/hami/deep/file", "options": ["ro", "rbind"]}]
        edits = {"env": ["A=cdi", "B=cdi"], "mounts": mounts, "deviceNodes": [{"path": "/dev/hami0", "hostPath": "/dev/null"}]}
        write_cdi(node.dir / "cdi", "x.1", **edits)
        wait_until("it ran", 5, lambda: node.pod("p")["phase"] == "Succeeded")
        lines = node.logs("p").splitlines()
        assert lines[0] == "cdi cdi pod" and lines[1] == "c" and lines[2] == "content" and lines[-1] == "read-only"
        # The same name in two files is in none.
        (node.dir / "cdi/copy.json").write_text((node.dir / "cdi/hami-vgpu-x.1.json").read_text().replace("x.1", "x.2"))
        write_cdi(node.dir / "cdi", "x.2", **edits)
        node.run(pod("q", [container(devices=1)]), wait="none")
        wait_until("two specs", 5, lambda: "unresolvable" in node.container("q")["message"])
    finally:
        plugin.close()
        node.close()


def test_classic_answers_env_loses_to_the_pods(node, plugin):
    plugin.answer = lambda ids: pb.ContainerAllocateResponse(
        envs=[pb.TextPair(key="A", value="answer"), pb.TextPair(key="B", value="answer")],
        devices=[pb.DeviceSpec(container_path="/dev/hami0", host_path="/dev/null", permissions="rw")],
        mounts=[pb.Mount(container_path="/hami", host_path="/usr/bin", read_only=True)])
    assert node.run(pod("p", [container(script="echo $A $B; ls -d /dev/hami0 /hami/env", devices=1, env={"A": "pod"})]))[-1]["ok"]
    assert node.logs("p").split() == ["pod", "answer", "/dev/hami0", "/hami/env"]


def test_a_container_has_namespaces_of_its_own(node):
    script = "echo $$; readlink /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/ipc; ls /run /dev/shm"
    assert node.run(pod("p", [container(script=script)]))[-1]["ok"]
    lines = node.logs("p").splitlines()
    assert lines[0] == "1"
    for i, name in enumerate(("mnt", "pid", "ipc")):
        assert lines[1 + i].startswith(f"{name}:[") and lines[1 + i] != os.readlink(f"/proc/self/ns/{name}")


def test_without_descriptors_it_does_not_spin(node):
    def cpu():
        fields = open(f"/proc/{node.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    begun = cpu()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(node.dir / "simkubelet.sock"))
        client.sendall(b'{"cmd":"status"}\n')
        time.sleep(0.5)
        assert cpu() - begun < 0.2
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, before)
        client.settimeout(5)
        assert b'"done":true' in client.recv(65536)


def test_exec_is_inside(node):
    node.run(pod("p", [container(script="touch /etc/inside; exec sleep 1000", env={"MARK": "7"})]), wait="running")
    wait_until("touched", 5, lambda: node.client("exec", "p", "/bin/test", "-e", "/etc/inside").returncode == 0)
    done = node.client("exec", "p/c", "/bin/sh", "-c", "echo $MARK $(cat /proc/1/comm); exit 7")
    assert (done.returncode, done.stdout) == (7, "7 sleep\n")
    assert node.client("exec", "nobody", "/bin/true").returncode == 1


def test_restart_policies(node):
    assert node.run(pod("never", [container(script="exit 3")]))[-1]["phase"] == "Failed"
    assert node.container("never")["exit_code"] == 3
    node.run(pod("onfailure", [container(script="exit 3")], restart="OnFailure"), wait="none")
    wait_until("restarts", 5, lambda: node.container("onfailure")["restarts"] >= 2)
    assert node.run(pod("init", [container()], [container("i", "exit 1")]))[-1]["phase"] == "Failed"
    node.run(pod("always", [container(script="echo once; sleep 0.1")], restart="Always"), wait="none")
    wait_until("restarts", 5, lambda: node.container("always")["restarts"] >= 1)
    assert pathlib.Path(node.container("always")["log"] + ".1").read_text() == "once\n"


def test_a_sidecar_that_does_not_start_holds_back_the_rest(node):
    broken = {"name": "side", "command": ["/no/such/program"], "restartPolicy": "Always"}
    node.run(pod("p", [container(script=SLEEP)], [broken]), wait="none")
    wait_until("the sidecar's error", 5, lambda: "No such file" in node.container("p", "side")["message"])
    time.sleep(0.5)
    assert node.container("p")["state"] == "waiting"


def test_kubelet_restart_rejects_at_risk_pods_where_no_plugin_is(node, plugin):
    """real-cluster facts: a running container that was never restarted lives; a restarted one, or an init container with a
    device, costs the pod its life."""
    plugin.stop_watching = True  # it will not register again
    node.run(pod("fresh", [container(script=SLEEP, devices=1)], restart="Always"), wait="running")
    node.run(pod("init", [container(script=SLEEP, devices=1)], [container("i", devices=1)], restart="Always"), wait="running")
    node.run(pod("again", [container(script=SLEEP, devices=1)], restart="Always"), wait="running")
    node.ask(cmd="kill", name="again")
    wait_until("restart", 5, lambda: node.container("again")["restarts"] == 1)
    node.ask(cmd="kubelet-restart", down_ms=20)
    wait_until("readmission", 5, lambda: node.pod("init")["phase"] == "Failed")
    phases = {n: node.pod(n)["phase"] for n in ("fresh", "init", "again")}
    assert phases == {"fresh": "Running", "init": "Failed", "again": "Failed"}
    assert node.pod("init")["reason"] == "UnexpectedAdmissionError"
    assert node.container("init")["pid"] == 0


def test_kubelet_restart_leaves_stale_sockets_while_it_is_down(node, plugin):
    node.ask(cmd="kubelet-stop")
    assert (node.dir / "device-plugins/kubelet.sock").exists() and (node.dir / "pod-resources/kubelet.sock").exists()
    (node.dir / "device-plugins/file").write_text("stays")
    plugin.take()
    node.ask(cmd="kubelet-start", gap_ms=30)
    wait_until("registered again", 5, lambda: node.status()["resources"].get("hami.com/vgpu", {}).get("allocatable") == 8)
    assert (node.dir / "device-plugins/file").exists()


def digest(folder):
    out = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).rglob("*")):
        out.update(str(path).encode())
        if path.is_file() and not path.is_symlink():
            out.update(path.read_bytes())
    return out.hexdigest()


VANDAL = "for f in /etc/*; do [ -f $f ] && echo broken >> $f; done; rm -rf /etc/default /usr/share/doc; echo x > /etc/new; "


def own_processes(marker):
    return [p for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and marker in cmdline(p)]


def cmdline(proc):
    try:
        return (proc / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could hurt the machine")
def test_the_machine_is_as_it_was_even_after_kill_9(short_tmp):
    before, mounts = digest("/etc"), pathlib.Path("/proc/self/mounts").read_text()
    node = SimKubelet(short_tmp / "k").wait_up()
    marker = f"31415.{os.getpid()}"  # a sleep that no other test has
    try:
        node.run(pod("p", [container(script=VANDAL + f"sleep {marker} & exec sleep {marker}")]), wait="running")
        wait_until("vandalised", 5, lambda: node.client("exec", "p", "/bin/test", "-e", "/etc/new").returncode == 0)
        wait_until("both sleep", 5, lambda: len(own_processes(marker)) >= 2)
        node.kill()
        wait_until("all died with it", 5, lambda: not own_processes(marker))
    finally:
        node.close()
    assert digest("/etc") == before
    assert pathlib.Path("/proc/self/mounts").read_text() == mounts


@pytest.mark.skipif(os.geteuid() != 0, reason="tests run as a user already")
def test_without_root(short_tmp):
    """User namespaces: the same, by a user who may nothing."""
    os.chmod(short_tmp, 0o777)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    node = SimKubelet(short_tmp / "k", prefix=user)
    try:
        try:
            node.wait_up()
        except AssertionError:
            log = pathlib.Path(node.log.name).read_text()
            assert node.process.wait(5) == 2 and "cannot make containers here" in log, log
            pytest.skip("no user namespaces here")
        assert node.run(pod("p", [container(script="id -u; echo x > /etc/new && cat /etc/new; echo $$")]))[-1]["ok"]
        assert node.logs("p").split() == ["0", "x", "1"]
    finally:
        node.close()


def test_in_a_user_namespace_of_the_callers(short_tmp):
    """Root there, but of none of the machine's files: mounts whose targets are missing below /usr must still be made."""
    (short_tmp / "file").write_text("content\n")
    node = SimKubelet(short_tmp / "k", f"--bind={short_tmp}/file:/usr/lib/hami-new/file,{short_tmp}/file:/bin/hami-new",
                      prefix=["unshare", "-Ur"])
    try:
        node.wait_up()
        assert node.run(pod("p", [container(script="cat /usr/lib/hami-new/file /bin/hami-new; ls /usr/lib | wc -l")]))[-1]["ok"]
        lines = node.logs("p").split()
        assert lines[:2] == ["content", "content"] and int(lines[2]) == len(os.listdir("/usr/lib")) + 1
    finally:
        node.close()


def test_where_no_container_can_be_made_it_says_so(short_tmp):
    script = "echo 0 >/proc/sys/user/max_mnt_namespaces && exec \"$@\""
    node = SimKubelet(short_tmp / "k", prefix=["unshare", "-Ur", "sh", "-c", script, "sh"])
    assert node.process.wait(10) == 2
    node.close()
    assert "cannot make containers here" in pathlib.Path(node.log.name).read_text()


def test_bad_requests_name_what_is_wrong(node):
    cases = [
        ('{"cmd":"fly"}', 'no command "fly"'),
        ('{"cmd":"run","pod":{"metadata":{"name":"A"},"spec":{"containers":[]}}}', "pod.metadata.name"),
        ('{"cmd":"run","pod":{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}}', "has no command"),
        ('{"cmd":"run","pod":{"metadata":{"name":"a"},"spec":{"restartPolicy":"x","containers":[{"name":"c","command":["x"]}]}}}',
         "is not Always, OnFailure or Never"),
        ('{"cmd":"delete","name":"ghost"}', "no pod default/ghost"),
        ("nonsense", "not JSON"),
    ]
    for request, want in cases:
        done = node.client("ctl", request)
        assert done.returncode != 0 and want in done.stderr, (request, done.stderr)
    assert node.run(pod("p", [{"name": "c", "command": ["/no/such/program"]}]), wait="none")[-1]["ok"]
    wait_until("said so", 5, lambda: "exec /no/such/program: No such file" in node.container("p")["message"])
