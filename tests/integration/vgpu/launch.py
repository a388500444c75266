"""Kernels by ctypes, for the children of the compute tests: launches of busy_ns, in the process that imports this."""
import json  # noqa: F401  (the children use it)
import pathlib
import time

from driver import *  # noqa: F401,F403
from driver import c, cuda, ok, start

PTX = pathlib.Path(__file__).resolve().parents[2] / "harness/kernels.ptx"


class Kernel:
    def __init__(self, device=0):
        self.context = start(device)
        module, self.function = c.c_void_p(), c.c_void_p()
        ok(cuda.cuModuleLoadData(c.byref(module), PTX.read_bytes() + b"\0"))
        ok(cuda.cuModuleGetFunction(c.byref(self.function), module, b"busy_ns"))

    def launch(self, ns, stream=None, call="cuLaunchKernel"):
        value = c.c_uint64(ns)
        params = (c.c_void_p * 1)(c.addressof(value))
        if call.startswith("cuLaunchKernelEx"):
            config = (c.c_uint32 * 14)(1, 1, 1, 1, 1, 1, 0, 0)
            return cuda[call](config, self.function, params, None)
        shape = [c.c_uint(n) for n in (1, 1, 1, 1, 1, 1, 0)]
        extra = [] if "Cooperative" in call else [None]
        return cuda[call](self.function, *shape, stream, params, *extra)

    def run(self, lengths, sync, seconds, call="cuLaunchKernel"):
        """Launches in turn, waiting for the card after each `sync` of them. Returns the number of launches."""
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            ok(self.launch(lengths[count % len(lengths)], call=call))
            count += 1
            if sync and count % sync == 0:
                ok(cuda.cuCtxSynchronize())
        return count
