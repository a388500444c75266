"""hami-smi as its users meet it: a state folder made by hand, no driver, a simulated one, a hung one."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
GPU = ["GPU-00000000-0000-0000-0000-00000000000%d" % i for i in range(2)]
NOWHERE = "/nowhere/libnvidia-ml.so.1"


@pytest.fixture
def smi(build, short_tmp):
    """Runs hami-smi against short_tmp/state, by default without a driver."""
    def run(*args, nvml=NOWHERE, state=short_tmp / "state", program=build / "bin" / "hami-smi", before=(), **kwargs):
        return subprocess.run([*before, str(program), "--state-dir", str(state), "--nvml-library", str(nvml), *args],
                              capture_output=True, text=True, timeout=30, check=False, **kwargs)
    return run


@pytest.fixture
def no_cards(build):
    """A driver that loads and knows no card."""
    library = build / "tests" / "libfake_nvml.so"
    if not library.exists():
        pytest.skip("the tests' NVML is not built")
    return library


@pytest.fixture
def sim(build, short_tmp):
    """A simulated node with two cards: (path of its NVML, simctl)."""
    simctl = build / "bin" / "hami-simctl"
    library = build / "sim" / "libnvidia-ml.so.1"
    if not simctl.exists() or not library.exists():
        pytest.skip("the simulation is not built")
    env = dict(os.environ, HAMI_SIM_DIR=str(short_tmp / "sim"))

    def call(*args):
        return subprocess.run([str(simctl), *args], env=env, capture_output=True, text=True, timeout=30, check=True).stdout
    call("up", str(REPO / "sim" / "nodes" / "t4x2.yaml"))
    yield library, call, env
    call("down")


@pytest.fixture
def state(short_tmp):
    folder = short_tmp / "state"
    (folder / "claims").mkdir(parents=True)
    (folder / "node").write_text(
        "hami-vgpu-node 1\nslots_per_card=4\nslot_memory_mb=0\nslicing=dynamic\nbinding=classic\npid=1\n" +
        "".join(f"card={u} slots=4 slot_memory=4026531840 slot_cores=25\n" for u in GPU) + "end\n")
    return folder


def claim(state, number, pod="train", devices=("0",), card=GPU[0], name=None, how="active"):
    (state / "claims" / (name or str(number))).write_text(
        "hami-vgpu-claim 1\n"
        f"number={number}\nstate={how}\npod_uid=u\npod_namespace=team-a\npod_name={pod}\n"
        f"container=main\nresource=hami.com/vgpu\ncdi=\ncreated_ms=1764447654123\n" +
        "".join(f"device={card}::{d}\n" for d in devices) +
        f"entry=0\ncard={card} memory={4026531840 * len(devices)} cores={25 * len(devices)} slot={devices[0]}\nend\n")


def test_no_driver_and_no_agent(smi):
    r = smi()
    assert r.returncode == 3
    assert r.stdout == ""
    assert f"hami-smi: no driver: cannot load {NOWHERE}" in r.stderr
    assert "--nvml-library" in r.stderr
    assert "hami-smi: no agent: open " in r.stderr
    assert "start hami-device-plugin" in r.stderr


def test_no_driver(smi, state):
    claim(state, 17, devices=("2", "3"))
    r = smi()
    assert r.returncode == 3
    assert "no agent" not in r.stderr
    assert "| ?/2      | team-a/train/main               |     2 |       N/A /   7680MiB |   50% | active    |" in r.stdout
    assert "|   - |                            | GPU-00000000 |       N/A /       N/A |      N/A |     2 / 4 |" in r.stdout
    assert "4 slots per card, dynamic slicing, classic binding" in r.stdout


def test_no_agent(smi, no_cards):
    r = smi(nvml=no_cards)
    assert r.returncode == 4
    assert "Driver Version: 550.54.15" in r.stdout
    assert "no driver" not in r.stderr
    assert "start hami-device-plugin on this node, or name its folder with --state-dir" in r.stderr


def test_all_there(smi, no_cards, state):
    r = smi(nvml=no_cards)
    assert (r.returncode, r.stderr) == (0, "")


def test_the_node_file_is_missing(smi, no_cards, state):
    (state / "node").unlink()
    r = smi(nvml=no_cards)
    assert r.returncode == 4
    assert f"{state}/node: No such file or directory" in r.stderr


@pytest.mark.parametrize("text,says,code", [
    ("hami-vgpu-node 2\nend\n", "the agent is of another release", 1),
    ("hami-vgpu-node 1\n", "node: line 2: \"end\" is missing".replace('"', '\\"'), 1),
    ("", "cannot be read", 1),
])
def test_a_node_file_that_makes_no_sense(smi, no_cards, state, text, says, code):
    (state / "node").write_text(text)
    r = smi(nvml=no_cards)
    assert r.returncode == code
    assert says in r.stderr


@pytest.mark.parametrize("what", [".", "node", "claims", "alloc"])
def test_no_permission(smi, build, no_cards, state, short_tmp, needs_root, what):
    # Copies: the build folder may be closed to others.
    program, library = short_tmp / "hami-smi", short_tmp / "libfake_nvml.so"
    shutil.copy(build / "bin" / "hami-smi", program)
    shutil.copy(no_cards, library)
    short_tmp.chmod(0o755)
    claim(state, 1)
    (state / "alloc").mkdir()
    (state / what).chmod(0)
    # Not by subprocess's user=: that forks, and grpcio's threads are in this process.
    r = smi(nvml=library, program=program, before=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    assert r.returncode == 5
    assert "no permission to read the agent's folder" in r.stderr
    assert "run as root" in r.stderr


def test_list(smi, no_cards, state):
    r = smi("-L")
    assert r.returncode == 3
    assert r.stdout == "".join(f"GPU -: unknown GPU (UUID: {u})\n" for u in GPU)
    assert smi("--list-gpus", nvml=no_cards, state="/nowhere").returncode == 0


@pytest.mark.parametrize("args,says", [
    (["--colour"], 'unknown option "--colour"'),
    (["-x"], 'unknown option "-x"'),
    (["cards"], '"cards" is no option'),
    (["--timeout", "soon"], '"soon" is not a number between 0 and 3600'),
    (["--timeout"], "--timeout needs a value"),
])
def test_bad_usage(smi, args, says):
    r = smi(*args)
    assert r.returncode == 2
    assert r.stdout == ""
    assert says in r.stderr


def test_help_and_version(smi):
    for flag in ("--help", "-h"):
        r = smi(flag)
        assert r.returncode == 0
        for option in ("--query", "--json", "--list-gpus", "--state-dir", "--nvml-library", "--timeout"):
            assert option in r.stdout
    for flag in ("--version", "-V"):
        r = smi(flag)
        assert r.returncode == 0
        assert re.fullmatch(r"hami-smi \d+\.\d+\.\d+\n", r.stdout)


def test_hostile_files(smi, no_cards, state):
    claim(state, 1, pod="\\x1b]0;owned\\x07" + "a" * 200)
    claim(state, 2, name="3")
    claim(state, 4, name="4.tmp-77")
    (state / "claims" / "5").write_bytes(b"hami-vgpu-claim 1\n\x1b[2J\xff\n")
    (state / "claims" / "6").symlink_to("/etc/shadow")
    (state / "claims" / "7").mkdir()
    os.mkfifo(state / "claims" / "8")
    (state / "claims" / "9").write_bytes(b"hami-vgpu-claim 1\n" + b"device=x\n" * 300000)
    r = smi(nvml=no_cards)
    assert r.returncode == 0
    assert r.stdout.isascii() and r.stdout.replace("\n", "").isprintable()
    table, notes = r.stdout.split("\nNotes:\n")
    assert max(map(len, table.splitlines())) <= 98
    assert "\\x1b]0;owned\\x07aaa" in table
    assert f"{state}/claims/3: says number 2" in notes
    assert f"{state}/claims/5: line 2: neither" in notes
    assert f"{state}/claims/6: is a link" in notes
    assert f"{state}/claims/7: is no plain file" in notes
    assert f"{state}/claims/8: is no plain file" in notes
    assert f"{state}/claims/9: larger than" in notes
    assert "claims/4" not in notes


@pytest.mark.parametrize("flags", [["-j"], ["-q", "-j"], ["--query", "--json"]])
def test_json(smi, no_cards, state, flags):
    claim(state, 17, devices=("1", "2"))
    claim(state, 18, how="ended")
    claim(state, 5, pod="\\xff")
    r = smi(*flags, nvml=no_cards)
    assert r.returncode == 0
    tree = json.loads(r.stdout)
    assert tree["version"] == 1
    assert tree["driver"]["state"] == "ok"
    assert tree["agent"]["slicing"] == "dynamic"
    assert [v["number"] for v in tree["vgpus"]] == [5, 17, 18]
    assert tree["vgpus"][0]["pod"]["name"] == "\\xff"
    assert tree["vgpus"][1]["cards"] == [{"uuid": GPU[0], "index": None, "slots": 2, "first_slot": 1, "cores": 50,
                                         "memory_limit": 8053063680, "memory_used": None, "memory_peak": None,
                                         "refused": None, "spilled": None, "spilled_bytes": None}]
    assert tree["vgpus"][1]["usage"]["state"] == "not_found"
    assert tree["cards"][0]["slots_used"] == 3
    assert tree["cards"][0]["memory_total"] is None


def test_json_without_anything(smi):
    r = smi("-j")
    assert r.returncode == 3
    tree = json.loads(r.stdout)
    assert tree["driver"]["state"] == "not_found"
    assert tree["agent"]["state"] == "not_found"
    assert tree["cards"] == tree["vgpus"] == tree["processes"] == []


def test_every_json_key_is_documented(smi, no_cards, state):
    claim(state, 17)
    text = (REPO / "docs" / "hami-smi.md").read_text()

    def keys(node):
        if isinstance(node, dict):
            for key, value in node.items():
                yield key
                yield from keys(value)
        elif isinstance(node, list):
            for value in node:
                yield from keys(value)
    missing = {k for k in keys(json.loads(smi("-j", nvml=no_cards).stdout)) if not re.search(rf"`{k}(\[\])?`", text)}
    assert not missing


def test_query(smi, no_cards, state):
    claim(state, 17)
    r = smi("-q", nvml=no_cards)
    assert r.returncode == 0
    assert re.search(r"^vgpus\[0\]\n    number +: 17\n", r.stdout, re.M)
    assert re.search(r"^    cards\[0\]\n        uuid +: " + GPU[0], r.stdout, re.M)


def test_a_closed_pipe_is_an_error(build, no_cards, state):
    with open("/dev/full", "w", encoding="ascii") as full:
        r = subprocess.run([str(build / "bin" / "hami-smi"), "--state-dir", str(state), "--nvml-library", str(no_cards)],
                           stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert r.returncode == 1
    assert "cannot write: No space left on device" in r.stderr


def test_simulated_cards(smi, sim):
    library, simctl, env = sim
    truth = json.loads(simctl("status", "-j"))["cards"]
    r = smi("-L", nvml=library, env=env)
    assert r.returncode == 0
    assert r.stdout == "".join(f"GPU {c['index']}: {c['name']} (UUID: {c['uuid']})\n" for c in truth)
    tree = json.loads(smi("-j", nvml=library, env=env).stdout)
    for card, real in zip(tree["cards"], truth):
        assert card["memory_total"] == real["total_bytes"]
        assert card["memory_reserved"] == real["reserved_bytes"]
        assert card["memory_used"] == real["used_bytes"] - real["reserved_bytes"]
        assert card["minor"] == real["minor"]
        assert card["pci_bus_id"].lower() == real["pci_bus_id"].lower()
        assert card["numa_node"] == real["numa_node"]


def test_simulated_processes(smi, sim, state):
    library, simctl, env = sim
    simctl("gpu", "1", "hold", "1000")
    tree = json.loads(smi("-j", nvml=library, env=env).stdout)
    stray = [p for p in tree["processes"] if p["index"] == 1]
    assert len(stray) == 1
    assert stray[0]["memory_used"] >= 1000 << 20
    assert stray[0]["vgpu"] is None
    assert pathlib.Path(f"/proc/{stray[0]['pid']}/comm").read_text().strip() == stray[0]["name"]
    assert tree["cards"][1]["memory_used"] >= 1000 << 20


def test_a_lost_card_is_named_and_the_other_shown(smi, sim, state):
    library, simctl, env = sim
    simctl("gpu", "0", "lost")
    r = smi(nvml=library, env=env)
    assert r.returncode == 0
    assert re.search(r"^\|   1 \| Tesla T4 ", r.stdout, re.M)
    assert not re.search(r"^\|   0 \|", r.stdout, re.M)
    assert "Notes:\n  GPU 0: " in r.stdout


def test_a_hung_driver(smi, sim, state):
    library, simctl, env = sim
    simctl("gpu", "0", "nvml-hang", "60")
    r = smi("--timeout", "1", nvml=library, env=env)
    assert r.returncode == 1
    assert "the driver does not answer within 1 s" in r.stderr
    simctl("gpu", "0", "nvml-hang", "0")
    assert smi(nvml=library, env=env).returncode == 0
