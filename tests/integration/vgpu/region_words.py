"""Words of a region's file by their offsets: struct region_layout in contract/region_layout.h."""
import struct

PRIORITY_AT, POLICY_AT, OVERSUBSCRIBE_AT = 28, 32, 36  # of the header
COMPUTE_AT, COMPUTE_BYTES = 1593536, 128
SPANS_AT, WAITS_AT, OVERDUE_AT, ALPHA_AT, OPEN_AT, HOLD_AT, ALPHA_UNTIL_AT = 8, 24, 32, 64, 80, 88, 96  # of a card's compute


def header_word(region, at):
    with open(region, "rb") as f:
        f.seek(at)
        return struct.unpack("<I", f.read(4))[0]


def word(region, at, card=0):
    with open(region, "rb") as f:
        f.seek(COMPUTE_AT + card * COMPUTE_BYTES + at)
        return struct.unpack("<Q", f.read(8))[0]


def put_word(region, at, value, card=0):
    with open(region, "r+b") as f:
        f.seek(COMPUTE_AT + card * COMPUTE_BYTES + at)
        f.write(struct.pack("<Q", value & (2**64 - 1)))
