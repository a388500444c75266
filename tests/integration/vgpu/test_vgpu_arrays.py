"""Arrays are charged what they take: the region says what the simulated driver says."""
import sys

import pytest

MIB = 1 << 20
F32, U8, BC7 = 0x20, 0x01, 0x9D
LAYERED, CUBEMAP, SPARSE, DEFERRED = 1, 4, 0x40, 0x80

ARRAYS = r"""
class A1(c.Structure):
    _fields_ = [("w", c.c_uint), ("h", c.c_uint), ("format", c.c_int), ("n", c.c_uint)]
class A2(c.Structure):
    _fields_ = [("w", c.c_size_t), ("h", c.c_size_t), ("format", c.c_int), ("n", c.c_uint)]
class D1(c.Structure):
    _fields_ = [("w", c.c_uint), ("h", c.c_uint), ("d", c.c_uint), ("format", c.c_int), ("n", c.c_uint), ("flags", c.c_uint)]
class D2(c.Structure):
    _fields_ = [("w", c.c_size_t), ("h", c.c_size_t), ("d", c.c_size_t), ("format", c.c_int), ("n", c.c_uint), ("flags", c.c_uint)]
KINDS = {"cuArrayCreate": A1, "cuArrayCreate_v2": A2, "cuArray3DCreate": D1, "cuArray3DCreate_v2": D2, "cuMipmappedArrayCreate": D2}
def array(name, *words):
    "(code, handle); a mipmapped array's levels come last"
    out, more = c.c_void_p(), ()
    if name == "cuMipmappedArrayCreate":
        words, more = words[:-1], words[-1:]
    return getattr(cuda, name)(c.byref(out), c.byref(KINDS[name](*words)), *more), out
def destroy(name, a):
    return cuda.cuMipmappedArrayDestroy(a) if name == "cuMipmappedArrayCreate" else cuda.cuArrayDestroy(a)
"""

CASES = [
    ("cuArrayCreate", 1000, 0, F32, 4),
    ("cuArrayCreate", 1000, 700, F32, 1),
    ("cuArrayCreate_v2", 1000, 700, F32, 4),
    ("cuArrayCreate_v2", 1001, 701, U8, 1),
    ("cuArray3DCreate", 100, 100, 33, F32, 2, 0),
    ("cuArray3DCreate_v2", 100, 100, 33, F32, 2, 0),
    ("cuArray3DCreate_v2", 512, 512, 7, U8, 1, LAYERED),
    ("cuArray3DCreate_v2", 512, 512, 6, U8, 4, CUBEMAP),
    ("cuArray3DCreate_v2", 512, 512, 0, BC7, 1, 0),
    ("cuMipmappedArrayCreate", 1000, 1000, 0, F32, 4, 0, 10),
    ("cuMipmappedArrayCreate", 1000, 1000, 0, F32, 4, 0, 0),
    ("cuMipmappedArrayCreate", 64, 64, 64, U8, 4, 0, 99),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_the_region_and_the_driver_agree(container, node, case):
    c = container(256 * MIB)
    child = c.start([sys.executable, "-c", f"from driver import *\n{ARRAYS}\nstart()\ncode, a = array(*{case!r})\nok(code)\n"
                     f"print(os.getpid(), flush=True)\ninput()\nok(destroy({case[0]!r}, a))\nprint(used(), flush=True)\ninput()"])
    pid = int(child.stdout.readline())
    charged = c.snapshot()["cards"][0]["used"]
    driver = [p["bytes"] for p in node.status()["cards"][0]["processes"] if p["pid"] == pid]
    assert driver == [charged] and charged >= 65536
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "0\n"
    child.communicate("\n")
    assert c.snapshot()["cards"][0]["used"] == 0


@pytest.mark.parametrize("case", [case for case in CASES if case[1] == 1000], ids=lambda case: "-".join(map(str, case)))
def test_an_array_over_the_limit_is_refused(container, case):
    got = container(64 * MIB).python(ARRAYS + f"""
start()
case = {case!r}
held = []
while True:
    code, a = array(*case)
    if code:
        break
    held.append(a)
full = info()
ok(destroy(case[0], held.pop()))
again, a = array(*case)
held.append(a)
ok(max(destroy(case[0], a) for a in held))
print(json.dumps([code, full[0] < full[1] // 2, again, used(), destroy(case[0], a) != 0, used(), alloc(64 * MIB)[0]]))
""")
    assert got == [2, True, 0, 0, True, 0, 0]


@pytest.mark.parametrize("flags", [SPARSE, DEFERRED])
def test_arrays_without_memory_are_free(container, flags):
    got = container(2 * MIB).python(ARRAYS + f"""
start()
codes = []
for case in (("cuArray3DCreate_v2", 4096, 4096, 0, {F32}, 4, {flags}), ("cuMipmappedArrayCreate", 4096, 4096, 0, {F32}, 4, {flags}, 3)):
    code, a = array(*case)
    codes += [code, used(), destroy(case[0], a)]
print(json.dumps(codes))
""")
    assert got == [0] * 6


def test_what_the_driver_refuses_is_not_charged(container):
    got = container(64 * MIB).python(ARRAYS + f"""
start()
huge = 2**64 - 1
cases = [("cuArrayCreate_v2", 0, 4, {F32}, 1), ("cuArrayCreate_v2", huge, huge, {F32}, 1), ("cuArrayCreate_v2", 16, 16, 0x777, 1),
         ("cuArray3DCreate_v2", 16, 16, 3, {F32}, 1, {CUBEMAP}), ("cuMipmappedArrayCreate", huge, 1, 1, {F32}, 1, 0, huge % 2**32)]
codes = [array(*case)[0] for case in cases]
codes.append(cuda.cuArrayCreate_v2(None, None))
codes.append(cuda.cuMipmappedArrayCreate(None, None, 1))
print(json.dumps([codes, used()]))
""")
    assert got == [[1] * 7, 0]


def test_a_level_is_the_mipmapped_array_s(container):
    got = container(64 * MIB).python(ARRAYS + f"""
start()
code, m = array("cuMipmappedArrayCreate", 1024, 1024, 0, {F32}, 1, 0, 4)
ok(code)
before = used()
level = c.c_void_p()
ok(cuda.cuMipmappedArrayGetLevel(c.byref(level), m, 1))
print(json.dumps([used() == before, cuda.cuArrayDestroy(level) != 0, used() == before, cuda.cuMipmappedArrayDestroy(m), used()]))
""")
    assert got == [True, True, True, 0, 0]


def test_the_end_of_a_context_returns_its_arrays(container):
    got = container(64 * MIB).python(ARRAYS + f"""
start()
kept = array("cuArrayCreate_v2", 1024, 1024, {F32}, 1)[0]
own = c.c_void_p()
ok(cuda.cuCtxCreate_v2(c.byref(own), 0, 0))
codes = [array("cuArrayCreate_v2", 1024, 1024, {F32}, 1)[0], array("cuMipmappedArrayCreate", 1024, 1024, 0, {F32}, 1, 0, 2)[0]]
full = used()
ok(cuda.cuCtxDestroy_v2(own))
print(json.dumps([kept, codes, full, used()]))
""")
    assert got == [0, [0, 0], (4 + 4 + 5) * MIB, 4 * MIB]


def test_without_limits_arrays_pass(container):
    assert container().python(ARRAYS + f"""
start()
code, a = array("cuArrayCreate_v2", 1024, 1024, {F32}, 1)
print(json.dumps([code, cuda.cuArrayDestroy(a)]))
""") == [0, 0]
