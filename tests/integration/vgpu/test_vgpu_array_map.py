"""Memory mapped into sparse arrays: at every step the region says what the simulated driver says."""
import pytest

from steps import MIB, run

F32, LAYERED, SPARSE, DEFERRED = 0x20, 1, 0x40, 0x80
MAP = ["cuMemMapArrayAsync", "cuMemMapArrayAsync_ptsz"]

TILES = r"""
class Description(c.Structure):
    _fields_ = [("w", c.c_size_t), ("h", c.c_size_t), ("d", c.c_size_t), ("format", c.c_int), ("n", c.c_uint), ("flags", c.c_uint)]
class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("place", c.c_int), ("device", c.c_int), ("win32", c.c_void_p),
                ("kinds", c.c_ubyte * 2), ("usage", c.c_ushort), ("reserved", c.c_ubyte * 4)]
class Level(c.Structure):
    _fields_ = [("level", c.c_uint), ("layer", c.c_uint), ("low", c.c_uint * 3), ("extent", c.c_uint * 3)]
class Tail(c.Structure):
    _fields_ = [("layer", c.c_uint), ("offset", c.c_uint64), ("size", c.c_uint64)]
class Part(c.Union):
    _fields_ = [("level", Level), ("tail", Tail)]
class Operation(c.Structure):
    _fields_ = [("kind", c.c_int), ("resource", c.c_void_p), ("part_kind", c.c_int), ("part", Part), ("what", c.c_int),
                ("handle_kind", c.c_int), ("handle", c.c_uint64), ("offset", c.c_uint64), ("devices", c.c_uint), ("rest", c.c_uint * 3)]
def tile_pool(size, device=0):
    h = c.c_uint64()
    ok(cuda.cuMemCreate(c.byref(h), c.c_size_t(size), c.byref(Prop(type=1, place=1, device=device, usage=1)), c.c_uint64(0)))
    return h.value
def array(w, h, d, flags, levels=0):
    out, description = c.c_void_p(), Description(w, h, d, 0x20, 1, flags)
    if levels:
        ok(cuda.cuMipmappedArrayCreate(c.byref(out), c.byref(description), levels))
    else:
        ok(cuda.cuArray3DCreate_v2(c.byref(out), c.byref(description)))
    return out
def box(a, handle, low=(0, 0, 0), extent=(128, 128, 1), level=0, layer=0, mipmapped=0, offset=0, device=0):
    "Maps a handle, or unmaps where that is 0."
    return Operation(mipmapped, a, 0, Part(level=Level(level, layer, low, extent)), 1 if handle else 2, 0, handle, offset, 1 << device)
def tail(a, handle, size, layer=0):
    return Operation(1, a, 1, Part(tail=Tail(layer, 0, size)), 1 if handle else 2, 0, handle, 0, 1)
def go(*operations, call="cuMemMapArrayAsync"):
    return getattr(cuda, call)((Operation * len(operations))(*operations), len(operations), None)
def release(*handles):
    for h in handles:
        ok(cuda.cuMemRelease(c.c_uint64(h)))
"""


@pytest.mark.parametrize("call", MAP)
def test_tiles_keep_a_released_handle(container, call):
    assert run(container(64 * MIB), TILES + f"""
start()
call = {call!r}
a, one, two = array(300, 200, 0, {SPARSE}), tile_pool(4 * MIB), tile_pool(8 * MIB)
ok(go(box(a, one, extent=(300, 200, 1)), call=call))
ok(go(box(a, two, low=(128, 128, 0), extent=(172, 72, 1)), call=call))
refused = go(box(a, one, low=(1, 0, 0)), call=call) != 0
release(one, two)
stop()
ok(go(box(a, 0, low=(128, 128, 0)  , extent=(128, 72, 1)), call=call))
stop()
ok(go(box(a, 0, low=(256, 128, 0), extent=(44, 72, 1)), call=call))
stop()
ok(go(box(a, 0, extent=(256, 200, 1)), call=call))
stop()
ok(go(box(a, 0, extent=(300, 200, 1)), call=call))
stop()
ok(cuda.cuArrayDestroy(a))
print(json.dumps([refused, used()]))
""") == ([[12, 0], [12, 0], [4, 0], [4, 0], [0, 0]], [True, 0])


def test_a_tile_that_is_mapped_anew_lets_go(container):
    assert run(container(64 * MIB), TILES + f"""
start()
a, one, two = array(128, 128, 0, {SPARSE}), tile_pool(4 * MIB), tile_pool(8 * MIB)
ok(go(box(a, one)))
release(one)
stop()
ok(go(box(a, two)))
stop()
ok(go(box(a, two, offset=2 * MIB)))
release(two)
stop()
ok(go(box(a, 0)))
stop()
""") == ([[12, 0], [8, 0], [8, 0], [0, 0]], None)


@pytest.mark.parametrize("end", ["cuArrayDestroy(a)", "cuCtxDestroy_v2(own)"])
def test_the_end_of_an_array_gives_back(container, end):
    """Another array's tiles stay."""
    assert run(container(64 * MIB), TILES + f"""
start()
kept, own = array(512, 512, 0, {SPARSE}), c.c_void_p()
ok(cuda.cuCtxCreate_v2(c.byref(own), 0, 0))
a, one, two = array(512, 512, 0, {SPARSE}), tile_pool(4 * MIB), tile_pool(8 * MIB)
ok(go(box(a, one, extent=(512, 512, 1)), box(kept, two)))
release(one, two)
stop()
ok(cuda.{end})
stop()
ok(cuda.cuDevicePrimaryCtxReset_v2(0))
stop()
""") == ([[12, 0], [8, 0], [0, 0]], None)


def test_levels_layers_and_tails(container):
    assert run(container(64 * MIB), TILES + f"""
start()
m = array(512, 512, 2, {SPARSE | LAYERED}, 10)
h = [tile_pool(2 * MIB) for _ in range(4)]
ok(go(box(m, h[0], mipmapped=1), box(m, h[1], mipmapped=1, level=1), box(m, h[2], mipmapped=1, level=1, layer=1), tail(m, h[3], 65536, 1)))
release(*h)
stop()
ok(go(box(m, 0, mipmapped=1, level=1), tail(m, 0, 65536)))
stop()
ok(go(tail(m, 0, 65536, 1)))
stop()
ok(go(box(m, 0, mipmapped=1, extent=(512, 512, 1))))
stop()
ok(cuda.cuMipmappedArrayDestroy(m))
stop()
""") == ([[8, 0], [6, 0], [4, 0], [2, 0], [0, 0]], None)


def test_three_dimensions(container):
    """Tiles of 32 x 32 x 16."""
    assert run(container(64 * MIB), TILES + f"""
start()
a, h, other = array(64, 64, 64, {SPARSE}), tile_pool(2 * MIB), tile_pool(4 * MIB)
ok(go(box(a, h, extent=(32, 32, 32)), box(a, other, low=(32, 32, 48), extent=(32, 32, 16))))
release(h, other)
ok(go(box(a, 0, extent=(64, 64, 16))))
stop()
ok(go(box(a, 0, low=(0, 0, 16), extent=(64, 64, 32))))
stop()
ok(go(box(a, 0, extent=(64, 64, 64))))
stop()
""") == ([[6, 0], [4, 0], [0, 0]], None)


@pytest.mark.parametrize("levels", [0, 2])
def test_arrays_of_deferred_mapping_are_mapped_whole(container, levels):
    kind = 1 if levels else 0
    assert run(container(64 * MIB), TILES + f"""
start()
a, one, two = array(1024, 1024, 0, {DEFERRED}, {levels}), tile_pool(6 * MIB), tile_pool(8 * MIB)
whole = lambda h: box(a, h, low=(7, 7, 7), mipmapped={kind})
ok(go(whole(one)))
release(one)
stop()
ok(go(whole(two)))
release(two)
stop()
ok(go(whole(0)))
stop()
""") == ([[14, 0], [8, 0], [0, 0]], None)


def test_mapped_memory_counts_against_the_limit(container):
    assert container(64 * MIB).python(TILES + f"""
start()
a, h = array(128, 128, 0, {SPARSE}), tile_pool(60 * MIB)
ok(go(box(a, h)))
release(h)
refused = alloc(6 * MIB)[0]
ok(go(box(a, 0)))
print(json.dumps([refused, alloc(64 * MIB)[0]]))
""") == [2, 0]


def test_on_another_card(container):
    assert run(container(64 * MIB), TILES + f"""
start(0)
start(1)
a, h = array(128, 128, 0, {SPARSE}), tile_pool(4 * MIB, 1)
ok(go(box(a, h, device=1)))
release(h)
stop()
ok(cuda.cuArrayDestroy(a))
stop()
""") == ([[0, 4], [0, 0]], None)
