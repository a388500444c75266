#!/usr/bin/python3
"""tests/cuda/real.py WHAT: what only a real driver can run, under the limit that HAMI_CHECK_LIMIT names. Exit status and words as
those of the programs beside it (check.h): 0 passed, 1 a promise is broken, 2 it cannot say, 77 not available, and why.

cudart           the CUDA runtime, by ctypes: HAMI_CHECK_CUDART, else the one that the machine or a pip wheel has
torch            PyTorch's allocator, to its limit
torch-expandable the same with expandable segments (virtual memory management)
torch-graph      a CUDA graph captured and replayed in PyTorch
nccl             one rank of NCCL, which probes memory and peers as it starts
"""
import ctypes as c
import ctypes.util
import glob
import os
import site
import sys

from paths import BROKEN, CANNOT, MIB, NOT_AVAILABLE, PASSED

LIMIT = int(os.environ.get("HAMI_CHECK_LIMIT", "0"))
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
broken = []


def not_available(why):
    print(f"not available: {why}")
    sys.exit(NOT_AVAILABLE)


def holds(condition, text):
    if not condition:
        print(f"broken: {text}")
        broken.append(text)


def cudart_library():
    """The first that loads; the environment's own choice must."""
    chosen = os.environ.get("HAMI_CHECK_CUDART")
    places = [chosen] if chosen else [
        *(p for folder in [*site.getsitepackages(), site.getusersitepackages()]
          for p in sorted(glob.glob(f"{folder}/nvidia/**/libcudart.so.*", recursive=True))),
        *sorted(glob.glob("/usr/local/cuda*/lib64/libcudart.so.*")), ctypes.util.find_library("cudart")]
    for place in filter(None, places):
        try:
            return c.CDLL(place)
        except OSError as e:
            if chosen:
                raise RuntimeError(f"HAMI_CHECK_CUDART: {e}") from e
    not_available("no libcudart.so here: name one in HAMI_CHECK_CUDART, or pip install nvidia-cuda-runtime")
    return None


def cudart():
    rt = cudart_library()
    version = c.c_int()
    rt.cudaRuntimeGetVersion(c.byref(version))
    code = rt.cudaFree(None)  # makes the context
    if code != 0:
        not_available(f"the CUDA runtime {version.value} does not start with this driver: error {code}")
    for name, free in (("cudaMalloc", "cudaFree"), ("cudaMallocAsync", "cudaFreeAsync")):
        fill_by(rt, name, free)
    print(f"CUDA runtime {version.value}")


def memory_of(rt):
    free, total = c.c_size_t(), c.c_size_t()
    holds(rt.cudaMemGetInfo(c.byref(free), c.byref(total)) == 0, "cudaMemGetInfo fails")
    return free.value, total.value


def fill_by(rt, name, free):
    """Pieces of 64 MiB until one is refused; and all back."""
    before, total = memory_of(rt)
    holds(total == LIMIT, f"cudaMemGetInfo shows a total of {total}, the limit is {LIMIT}")
    stream = [None] if name.endswith("Async") else []
    pieces, code = [], 0
    while code == 0 and len(pieces) * 64 * MIB <= LIMIT:
        p = c.c_void_p()
        code = getattr(rt, name)(c.byref(p), c.c_size_t(64 * MIB), *stream)
        if code == 0:
            pieces.append(p)
    rt.cudaGetLastError()  # the refusal is no lasting error
    holds(code == OUT_OF_MEMORY, f"{name}: {len(pieces)} pieces of 64 MiB were granted, then error {code}")
    for p in pieces:
        holds(getattr(rt, free)(p, *stream) == 0, f"{free} fails")
    rt.cudaDeviceSynchronize()
    after = memory_of(rt)[0]
    holds(before - after <= 64 * MIB, f"{name}: {before} bytes were free, {after} are after all was freed")


def torch_module():
    try:
        import torch
    except ImportError:
        not_available(f"{sys.executable} has no PyTorch (HAMI_CHECK_PYTHON names another interpreter)")
    if not torch.cuda.is_available():
        not_available("this PyTorch sees no card")
    return torch


def torch_fill():
    t = torch_module()
    total = t.cuda.mem_get_info()[1]
    holds(total == LIMIT, f"torch.cuda.mem_get_info shows a total of {total}, the limit is {LIMIT}")
    pieces, refused = [], False
    while not refused and len(pieces) * 64 * MIB <= LIMIT:
        try:
            pieces.append(t.empty(64 * MIB, dtype=t.uint8, device="cuda"))
        except t.cuda.OutOfMemoryError:
            refused = True
    holds(refused, f"{len(pieces)} tensors of 64 MiB were granted")
    holds(len(pieces) * 64 * MIB >= LIMIT // 4, f"only {len(pieces)} tensors of 64 MiB were granted")
    granted = len(pieces)
    pieces.clear()
    t.cuda.empty_cache()
    again = [t.ones(64 * MIB, dtype=t.uint8, device="cuda") for _ in range(max(granted - 1, 1))]
    holds(int(again[-1].sum().item()) == 64 * MIB, "the memory does not hold what was written")
    print(f"PyTorch {t.__version__}, {granted} tensors of 64 MiB")


def torch_expandable():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    torch_fill()


def torch_graph():
    t = torch_module()
    x = t.zeros(1 << 20, device="cuda")
    y = x + 1  # warm: the kernel is loaded
    t.cuda.synchronize()
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        y = x * 2 + 1
        z = t.empty(1 << 20, device="cuda").fill_(3) + y
    for value in range(1, 6):
        x.fill_(value)
        graph.replay()
        t.cuda.synchronize()
        holds(float(z[0]) == value * 2 + 4, f"replay {value} gave {float(z[0])}")


def nccl():
    t = torch_module()
    if not t.distributed.is_nccl_available():
        not_available("this PyTorch has no NCCL")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29511"))
    t.distributed.init_process_group("nccl", rank=0, world_size=1)
    x = t.full((1 << 20,), 7.0, device="cuda")
    t.distributed.all_reduce(x)
    t.cuda.synchronize()
    holds(float(x[-1]) == 7.0, f"all_reduce of one rank gave {float(x[-1])}")
    t.distributed.destroy_process_group()


CHECKS = {"cudart": cudart, "torch": torch_fill, "torch-expandable": torch_expandable, "torch-graph": torch_graph, "nccl": nccl}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS or LIMIT == 0:
        print(__doc__, file=sys.stderr)
        return CANNOT
    try:
        CHECKS[sys.argv[1]]()
    except (RuntimeError, AttributeError, OSError) as e:  # PyTorch's errors are RuntimeErrors
        print(f"cannot: {e}")
        return CANNOT
    return BROKEN if broken else PASSED


if __name__ == "__main__":
    sys.exit(main())
