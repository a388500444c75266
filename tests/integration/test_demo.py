"""make demo as a test: it passes, it fails without the preload, and the machine is as it was, whatever happens to it."""
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from kubelet_peer import wait_until
from simkubelet_peer import BUILD, REPO
from test_simkubelet import cannot_make_containers

DEMO = REPO / "tools/demo"
pytestmark = pytest.mark.skipif(cannot_make_containers(), reason="no namespaces for this user")


def demo(*flags, prefix=(), timeout=180):
    return subprocess.run([*prefix, sys.executable, str(DEMO), f"--build={BUILD}", *flags], capture_output=True, text=True,
                          timeout=timeout, check=False)


def etc():
    """Every readable byte and name below /etc."""
    out = hashlib.sha256()
    for path in sorted(pathlib.Path("/etc").rglob("*")):
        out.update(str(path).encode())
        try:
            if path.is_file() and not path.is_symlink():
                out.update(path.read_bytes())
        except PermissionError:
            pass
    return out.hexdigest()


@pytest.fixture(autouse=True)
def unharmed():
    """Same /etc, same mounts, no folder and no process of the demo left."""
    def folders():
        return set(pathlib.Path("/tmp").glob("hami-demo-*"))

    def mounts():
        return pathlib.Path("/proc/self/mounts").read_text()
    before = etc(), mounts(), folders()
    yield
    wait_until("the demo's processes to be gone", 15, lambda: not processes(folders() - before[2]), every=0.1)
    wait_until("the demo's folder to be gone", 15, lambda: folders() <= before[2], every=0.1)
    assert (etc(), mounts()) == before[:2]


def processes(folders):
    """Command lines that name one of the folders."""
    out = []
    for proc in pathlib.Path("/proc").iterdir():
        if proc.name.isdigit():
            try:
                line = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            out += [line for f in folders if str(f) in line]
    return out


def test_demo_passes():
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every container is held to its slice" in done.stdout
    assert done.stdout.count("CUDA_ERROR_OUT_OF_MEMORY") >= 3
    assert "hami-smi" in done.stdout and "default/greedy/c" in done.stdout
    assert done.stdout.count("3727 MiB") >= 5, "each sees its slice of a T4"


def test_demo_fails_without_the_preload():
    done = demo("--without-preload")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DIFFERENCES" in done.stdout
    for want in ("alice: cuDeviceTotalMem: 15634268160 is not 3908042752", "greedy: holds", "greedy was answered"):
        assert want in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="tests run as a user already")
def test_demo_without_root():
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*user, "test", "-r", str(BUILD / "lib/libvgpu.so")], check=False).returncode != 0:
        pytest.skip(f"{BUILD} cannot be read by other users")
    done = demo(prefix=user)
    if done.returncode == 2:
        assert "cannot make containers here" in done.stderr
        pytest.skip("no user namespaces here")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("signo, code", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_demo_ended_in_the_middle(signo, code):
    process = subprocess.Popen([sys.executable, str(DEMO), f"--build={BUILD}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in process.stdout:
        if "starting pair" in line:
            break
    process.send_signal(signo)
    process.stdout.close()
    assert process.wait(30) == code


def test_demo_on_a_real_card_says_when_there_is_none():
    if shutil.which("nvidia-smi") is not None:
        pytest.skip("there may be one")
    done = demo("--gpu=real")
    assert done.returncode == 2 and "no NVIDIA driver" in done.stderr


def test_demo_without_a_build_says_what_to_do(tmp_path):
    done = demo(f"--build={tmp_path}")
    assert done.returncode == 2 and "run make first" in done.stderr


def test_demo_takes_little_time():
    start = time.monotonic()
    assert demo().returncode == 0
    assert time.monotonic() - start < 60, "3 minutes on 2 cores are its limit; it takes about a second"
