"""hami-simctl: up, down, bad words, and a daemon with more clients than descriptors."""
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time

import pytest

from sim_peer import BUILD, MIB, NODES, OK, until


def test_up_makes_and_down_removes_everything(sim):
    out = sim.ctl("up", NODES / "t4x2.yaml")
    assert "node t4x2 is up" in out and "2 cards" in out
    assert stat.S_IMODE(sim.dir.stat().st_mode) == 0o755
    for name in ("socket", "state"):
        assert stat.S_IMODE((sim.dir / name).stat().st_mode) == 0o666
    nodes = sorted(p.name for p in (sim.dir / "dev").iterdir())
    assert nodes == ["nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidiactl"]
    daemon = sim.status()["daemon_pid"]
    sim.ctl("gpu", 0, "hold", 100)
    holder = sim.card()["processes"][0]["pid"]
    sim.ctl("down")
    assert not sim.dir.exists()
    for pid in (daemon, holder):
        assert not pathlib.Path(f"/proc/{pid}").exists() or "Z" in pathlib.Path(f"/proc/{pid}/stat").read_text()


def test_down_leaves_a_folder_that_was_there(sim):
    sim.dir.mkdir()
    (sim.dir / "mine").write_text("x")
    sim.up()
    sim.ctl("down")
    assert [p.name for p in sim.dir.iterdir()] == ["mine"]


def test_down_after_the_daemon_was_killed(sim):
    sim.up()
    os.kill(sim.status()["daemon_pid"], signal.SIGKILL)
    until("socket is dead", lambda: sim.run("status").returncode == 1)
    sim.ctl("down")
    assert not sim.dir.exists()


def test_cdi_spec_is_what_a_runtime_needs(sim):
    sim.up("l4x4")
    spec = json.loads((sim.dir / "cdi/nvidia.json").read_text())
    assert spec["kind"] == "nvidia.com/gpu" and spec["cdiVersion"] == "0.5.0"
    uuids = [c["uuid"] for c in sim.status()["cards"]]
    assert [d["name"] for d in spec["devices"]] == sum(([str(i), u] for i, u in enumerate(uuids)), []) + ["all"]
    nodes = {d["name"]: [n["path"] for n in d["containerEdits"]["deviceNodes"]] for d in spec["devices"]}
    assert nodes[uuids[2]] == nodes["2"] == ["/dev/nvidia2"]
    assert nodes["all"] == [f"/dev/nvidia{i}" for i in range(4)]
    common = spec["containerEdits"]
    assert common["env"] == [f"HAMI_SIM_DIR={sim.dir}"]
    for node in common["deviceNodes"] + spec["devices"][0]["containerEdits"]["deviceNodes"]:
        assert pathlib.Path(node["hostPath"]).exists()
    mounts = {m["containerPath"]: m["hostPath"] for m in common["mounts"]}
    assert mounts[str(sim.dir)] == str(sim.dir)
    library = next(m for m in mounts if m.endswith("/libnvidia-ml.so.1"))
    assert pathlib.Path(mounts[library]).resolve() == (BUILD / "sim/libnvidia-ml.so.1").resolve()


@pytest.mark.parametrize("words, code, error", [
    ([], 2, "no command; see --help"),
    (["upp"], 2, 'unknown command "upp"; see --help'),
    (["up"], 2, "up: too few words; see --help"),
    (["up", "/none.yaml"], 2, "/none.yaml: No such file or directory"),
    (["up", "NODE", "--clock=fast"], 2, '--clock: "fast" is none of wall|virtual'),
    (["up", "BAD"], 2, "bad.yaml: line 1: name: is missing"),
    (["--dirr=x", "status"], 2, 'unknown option "--dirr=x"; see --help'),
    (["status"], 1, "No such file or directory"),
    (["down"], 1, "No such file or directory"),
])
def test_bad_words_without_a_node(sim, short_tmp, words, code, error):
    (short_tmp / "bad.yaml").write_text("driver_version: x\n")
    words = [{"NODE": NODES / "t4x2.yaml", "BAD": short_tmp / "bad.yaml"}.get(w, w) for w in words]
    done = sim.run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(r"hami-simctl: .*\n", done.stderr) and error in done.stderr


@pytest.mark.parametrize("words, error", [
    (["gpu"], "gpu: too few words"),
    (["gpu", "2", "lost"], "GPU 2: this node has 2"),
    (["gpu", "-1", "lost"], "unknown option"),
    (["gpu", "x", "lost"], 'GPU: "x" is not a number between 0 and 15'),
    (["gpu", "0", "explode"], 'gpu N: unknown verb "explode"'),
    (["gpu", "0", "xid"], "gpu N xid takes 1 more words"),
    (["gpu", "0", "xid", "0"], 'NUMBER: "0" is not a number between 1 and 999'),
    (["gpu", "0", "lost", "now"], "gpu N lost takes 0 more words"),
    (["gpu", "0", "nvml-error", "nvmlDeviceGetNam", "3"], '"nvmlDeviceGetNam" is no NVML call'),
    (["gpu", "0", "nvml-error", "nvmlDeviceGetName", "ten"], 'CODE: "ten" is not a number between 0 and 999'),
    (["gpu", "0", "nvml-hang", "1.5"], 'SECONDS: "1.5" is not a number'),
    (["gpu", "0", "hold", "-5"], "unknown option"),
    (["driver-reload", "--down-ms=x"], '--down-ms: "x" is not a number'),
])
def test_bad_words_with_a_node(sim, words, error):
    sim.up()
    before = sim.status()
    done = sim.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
    after = sim.status()
    before["now_ns"] = after["now_ns"]
    assert after == before


def test_no_folder_named(sim):
    env = {k: v for k, v in sim.env.items() if k != "HAMI_SIM_DIR"}
    done = sim.run("status", env=env)
    assert done.returncode == 2 and "set HAMI_SIM_DIR or give --dir" in done.stderr


def test_a_second_node_in_the_same_folder_is_refused(sim):
    sim.up()
    first = sim.status()["daemon_pid"]
    done = sim.run("up", NODES / "l4x4.yaml")
    assert done.returncode == 1 and "is up in" in done.stderr
    assert sim.status()["daemon_pid"] == first


def test_a_path_too_long_for_a_socket(sim, short_tmp):
    done = sim.run(f"--dir={short_tmp / ('x' * 100)}", "up", NODES / "t4x2.yaml")
    assert done.returncode == 2 and "longer than a socket's path may be" in done.stderr


def test_more_clients_than_descriptors(sim):
    """A daemon that cannot accept waits; it does not spin, and serves again once others have left."""
    limited = ["/bin/bash", "-c", 'ulimit -n 24; exec "$0" "$@"', str(BUILD / "bin/hami-simctl"), "up", str(NODES / "t4x2.yaml")]
    subprocess.run(limited, env=sim.env, check=True, capture_output=True)
    daemon = sim.status()["daemon_pid"]
    crowd = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(40)]
    for one in crowd:
        one.connect(str(sim.dir / "socket"))

    def cpu():
        fields = pathlib.Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = cpu()
    time.sleep(1)
    assert cpu() - before < 0.3
    for one in crowd:
        one.close()
    assert sim.user()("charge", 0, MIB)[0] == OK
