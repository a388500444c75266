"""A simulated node, its users (sim_user.c) and its libnvidia-ml.so.1 through ctypes."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))
NODES = REPO / "sim" / "nodes"
MIB = 1 << 20
MS = 1_000_000
T4_RESERVED = 450 * MIB
T4_CONTEXT = 104 * MIB
OK, NO_NODE, NO_CARD, NO_MEMORY, LOST, NOT_FOUND, RELOADED = range(7)

NVML_PRELUDE = """
import ctypes, json, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
u32, u64, ptr = ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_void_p
def handle(index):
    h = ptr()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(h)) == 0
    return h
def text(call, *args):
    b = ctypes.create_string_buffer(96)
    r = getattr(nvml, call)(*args, b, 96)
    return b.value.decode() if r == 0 else r
def number(call, *args):
    v = u32()
    r = getattr(nvml, call)(*args, ctypes.byref(v))
    return v.value if r == 0 else -r
class Memory(ctypes.Structure):
    _fields_ = [("total", u64), ("free", u64), ("used", u64)]
class Process(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32)]
class Sample(ctypes.Structure):
    _fields_ = [("pid", u32), ("at", u64), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32)]
def memory(h):
    m = Memory()
    r = nvml.nvmlDeviceGetMemoryInfo(h, ctypes.byref(m))
    return [m.total, m.free, m.used] if r == 0 else r
def processes(h, call="nvmlDeviceGetComputeRunningProcesses_v3"):
    n, out = u32(64), (Process * 64)()
    assert getattr(nvml, call)(h, ctypes.byref(n), out) == 0
    return {out[i].pid: out[i].used for i in range(n.value)}
"""



def until(what, probe, seconds=5):
    end = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def sanitizer_runtime():
    """What must be preloaded so that Python can load a library built with sanitizers; None where it needs nothing."""
    library = BUILD / "sim/libnvidia-ml.so.1"
    if "__asan_init" not in subprocess.run(["nm", "-D", library], text=True, capture_output=True).stdout:
        return None
    linked = re.search(r"libasan\S* => (\S+)",
                       subprocess.run(["ldd", library], text=True, capture_output=True).stdout)
    if linked:
        return linked[1]
    return subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], text=True, check=True,
                          capture_output=True).stdout.strip()


class Sim:
    def __init__(self, folder):
        self.dir = folder
        self.env = dict(os.environ, HAMI_SIM_DIR=str(folder), LD_LIBRARY_PATH=str(BUILD / "sim"))
        self.env.pop("NVIDIA_VISIBLE_DEVICES", None)
        runtime = sanitizer_runtime()
        # Python's own leaks are not ours.
        preload = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"} if runtime else {}
        self.python_env = dict(self.env, **preload)
        self.users = []

    def run(self, *words, **kw):
        return subprocess.run([kw.pop("program", BUILD / "bin/hami-simctl"), *map(str, words)], env=kw.pop("env", self.env), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30, **kw)

    def ctl(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def up(self, node="t4x2", *words):
        self.ctl("up", NODES / f"{node}.yaml", *words)
        return self

    def status(self):
        return json.loads(self.ctl("status", "-j"))

    def card(self, index=0):
        return self.status()["cards"][index]

    def user(self, prefix=()):
        user = User([*prefix, str(BUILD / "tests/sim_user")], self.env)
        self.users.append(user)
        return user

    def nvml(self, code, **env):
        """Runs Python code with `nvml` (the library) and helpers at hand; what it prints as JSON."""
        done = subprocess.run([sys.executable, "-c", NVML_PRELUDE + code], env=dict(self.python_env, **env), text=True,
                              capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class User:
    def __init__(self, argv, env):
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.attached, self.pid = self.read()

    def read(self):
        result, number = self.process.stdout.readline().split()
        return int(result), int(number)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
