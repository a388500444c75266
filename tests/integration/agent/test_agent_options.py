"""hami-device-plugin: its options, its end, its health, classic binding and its size."""
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import kubelet_peer
from kubelet_peer import ids, UUIDS, wait_until


# ---- ending, options, health

def test_a_second_agent_on_the_same_state_is_refused(node, kubelet):
    second = subprocess.run(node.arguments([]), capture_output=True, text=True, timeout=20, check=False,
                            env={**os.environ, "FILE_NVML": str(node.nvml)})
    assert second.returncode == 1
    assert f"another hami-device-plugin runs with the state folder {node.state}" in second.stderr
    assert kubelet.plugin.allocate(ids(0, 0))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_ends_it_within_a_second(node, how):
    status, seconds = node.stop(how)
    print(f"{how.name} to exit {1000 * seconds:.0f} ms")
    assert status == 0 and seconds < 1
    assert not (node.kubelet.folder / "hami-vgpu.sock").exists()


def test_a_node_without_a_card_is_told(agent, kubelet):
    agent.set_nvml(cards=0)
    kubelet.start()
    agent.start()
    kubelet.wait_registered()
    assert kubelet.devices() == []
    wait_until("said", 5, lambda: "no GPU was found on this node: nothing is offered" in agent.log())


def test_without_a_kubelet_socket_it_serves_and_never_registers(agent, kubelet):
    kubelet.start()
    agent.start("--kubelet-socket=", f"--device-plugin-dir={kubelet.folder}", "--healthz-bind-address=127.0.0.1:0")
    socket = kubelet.folder / "hami-vgpu.sock"
    wait_until("served", 5, socket.is_socket)
    plugin = kubelet_peer.Plugin(socket)
    devices = plugin.watch().next()
    assert {d.ID for d in devices} == {*ids(0, 0, 1, 2, 3), *ids(1, 0, 1, 2, 3)}
    assert plugin.allocate(ids(0, 0))
    port = re.search(r"serving health .*port=(\d+)", agent.log())[1]
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
    plugin.close()
    time.sleep(0.5)
    assert kubelet.registered.empty() and "registered resource" not in agent.log()
    assert agent.stop()[0] == 0


def test_sigterm_while_it_waits(agent):
    agent.set_nvml(ready=0)
    agent.start()
    wait_until("started", 5, lambda: "waiting for the driver" in agent.log())
    status, seconds = agent.stop()
    assert status == 0 and seconds < 1


def test_sigterm_while_nvml_hangs(agent):
    agent.set_nvml(hang=1)
    agent.start()
    wait_until("said", 15, lambda: "NVML does not answer" in agent.log())
    status, seconds = agent.stop()
    assert status == 0 and seconds < 1, agent.log()


def test_sigterm_while_another_agent_has_the_state(node, needs_root):
    """As the first process of its pod, for which no signal has a default action."""
    second = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *node.arguments([])], text=True,
                              stderr=subprocess.PIPE, env={**os.environ, "FILE_NVML": str(node.nvml)})
    try:
        assert "waiting for its end" in next(line for line in second.stderr if "another agent" in line)
        first = int(open(f"/proc/{second.pid}/task/{second.pid}/children").read())
        begun = time.monotonic()
        os.kill(first, signal.SIGTERM)
        assert second.wait(timeout=10) == 0 and time.monotonic() - begun < 1
    finally:
        second.kill()


def run(build, *flags, env=()):
    return subprocess.run([str(build / "bin/hami-device-plugin"), *flags], capture_output=True, text=True, timeout=10,
                          env={**os.environ, **dict(env)})


@pytest.mark.parametrize("flags, text", [
    (["--mode=dra"], "--mode=dra: this version has only --mode=slices and --mode=hami"),
    (["--mode=all"], '--mode: "all" is none of slices|hami|dra'),
    (["--cores-per-device=0"], '--cores-per-device: "0" is not a number between 1 and 1000'),
    (["--state-dir=here"], '--state-dir: "here" is not an absolute path'),
    (["--resource-name=vgpu"], '--resource-name: "vgpu" is not of the form domain/name'),
    (["-v=11"], '--v: "11" is not a number between 0 and 10'),
    (["--config=/nowhere.yaml"], "read /nowhere.yaml: No such file or directory"),
    (["word"], 'unexpected argument "word"; see --help'),
])
def test_bad_options(build, flags, text):
    done = run(build, *flags)
    assert done.returncode == 2
    assert done.stderr == f"hami-device-plugin: {text}\n"


def test_bad_config_names_file_line_key_and_reason(build, short_tmp):
    path = short_tmp / "config.yaml"
    path.write_text("# slots\nv: 2\n\n\n\n\ndeviceSplitCount: ten\n")
    done = run(build, f"--config={path}")
    assert done.returncode == 2
    assert done.stderr == (f'hami-device-plugin: read config {path}: line 7: deviceSplitCount: "ten" is not a number '
                           'between 1 and 1000\n')


def test_flag_over_environment_over_file(kubelet, agent, short_tmp):
    path = short_tmp / "config.yaml"
    path.write_text("cores-per-device: 3\nenable-topology: false\nslicing: dynamic\nfuture-key: {a: [1, 2]}\n")
    kubelet.start()
    agent.start(f"--config={path}", "--cores-per-device=5", env={"HAMI_VGPU_CORES_PER_DEVICE": "7",
                                                                 "HAMI_ENABLE_TOPOLOGY": "true"}.items())
    kubelet.wait_registered()
    devices = kubelet.devices()
    assert len(devices) == 10 and devices[0].HasField("topology")
    assert agent.log().count("future-key") == 1
    assert "slicing=dynamic" in (agent.state / "node").read_text()


def test_health_pages(kubelet, agent):
    agent.set_nvml(ready=0)
    agent.start("--healthz-bind-address=127.0.0.1:0")
    port = wait_until("the port", 5, lambda: re.search(r"serving health .*port=(\d+)", agent.log()))[1]

    def get(page):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    assert get("/healthz") == (200, "ok\n")
    assert get("/readyz")[0] == 503
    assert get("/elsewhere")[0] == 404
    kubelet.start()
    agent.set_nvml()
    kubelet.wait_registered(5)
    wait_until("ready", 5, lambda: get("/readyz")[0] == 200)


# ---- classic binding

def test_classic_binding_answers_everything(kubelet, agent):
    kubelet.start()
    agent.start("--binding=classic")
    kubelet.wait_registered()
    kubelet.devices()
    answer = kubelet.admit("uid-1", "c", ids(1, 1))
    (n,) = [int(p.name) for p in (agent.state / "claims").iterdir() if p.name.isdigit()]
    assert not answer.cdi_devices
    env = {e.key: e.value for e in answer.envs}
    assert env == {"HAMI_VGPU_UUID": f"{UUIDS[1]}/1", "NVIDIA_VISIBLE_DEVICES": UUIDS[1], "DRIVER": "1"}
    mounts = {m.container_path: m for m in answer.mounts}
    folder = agent.state / "alloc" / str(n)
    assert mounts["/run/hami-vgpu/limits"].host_path == str(folder / "limits")
    assert mounts["/run/hami-vgpu/limits"].read_only and not mounts["/run/hami-vgpu/usage"].read_only
    assert mounts["/etc/ld.so.preload"].read_only and "/run/hami-vgpu/libvgpu.so" in mounts
    assert [d.container_path for d in answer.devices] == ["/dev/null", "/dev/nvidia1"]
    assert "state=allocated" in (agent.state / "claims" / str(n)).read_text()
    (folder / "limits").unlink()
    kubelet.plugin.pre_start(ids(1, 1))
    assert (folder / "limits").exists() and not list(agent.cdi.glob("*"))
    assert "pod_uid=uid-1" in (agent.state / "claims" / str(n)).read_text()
    kubelet.forget("uid-1")
    wait_until("cleaned up", 12, lambda: agent.leftovers() == [])


@pytest.mark.parametrize("binding, kept", [("late", False), ("classic", True)])
def test_an_upgrade_keeps_the_library_that_a_stored_answer_names(kubelet, agent, binding, kept):
    """A late container that starts again gets a new spec; a classic one the answer that the kubelet keeps."""
    kubelet.start()
    agent.start(f"--binding={binding}")
    kubelet.wait_registered()
    kubelet.devices()
    kubelet.admit("uid-1", "c", ids(1, 1))
    kubelet.plugin.pre_start(ids(1, 1))
    (old,) = (agent.state / "lib").iterdir()
    agent.stop()
    agent.library.write_bytes(b"\x7fELF of the next version")
    agent.start(f"--binding={binding}")
    kubelet.wait_registered()
    assert old.exists() == kept


# ---- size

def test_idle_size(kubelet, agent, build):
    agent.set_nvml(cards=8)
    kubelet.start()
    agent.start("--cores-per-device=10")
    kubelet.wait_registered()
    time.sleep(1)
    rollup = open(f"/proc/{agent.process.pid}/smaps_rollup").read()
    rss = int(re.search(r"^Rss:\s+(\d+)", rollup, re.M)[1])
    dirty = int(re.search(r"^Private_Dirty:\s+(\d+)", rollup, re.M)[1])
    threads = len(os.listdir(f"/proc/{agent.process.pid}/task"))
    print(f"idle: RSS {rss} KiB, private dirty {dirty} KiB, {threads} threads")
    assert threads == 2 or b"asan" in open(f"/proc/{agent.process.pid}/maps", "rb").read()
    if b"libasan" not in open(f"/proc/{agent.process.pid}/maps", "rb").read():
        assert rss <= 14 * 1024 and dirty <= 3 * 1024


# ---- the page

def test_the_page_has_every_option_as_help_has_it(build):
    page = (kubelet_peer.REPO / "docs/agent.md").read_text()
    rows = {}
    for line in page.splitlines():
        if line.startswith("| `--"):
            cells = [c.strip().strip("`") for c in line.strip().strip("|").split("|")]
            rows[cells[0]] = (cells[1].replace("`", ""), cells[2], cells[3])
    wanted = {}
    for flag, text in re.findall(r"^  (--[a-z-]+).*\n        (.*)$", run(build, "--help").stdout, re.M):
        if flag in ("--help", "--version"):
            continue
        env = re.search(r" \[([A-Za-z_, ]+)\]$", text)
        text = text[:env.start()] if env else text
        default = re.search(r" \(default (\S+)\)$", text)
        text = text[:default.start()] if default else text
        wanted[flag] = (env[1] if env else "", default[1] if default else "", text)
    assert rows == wanted
