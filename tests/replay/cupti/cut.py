"""A fixture of plugins/cupti/fixture.h made small enough to be checked in: of each buffer the first
N records and the last N, with all names. What it keeps stays as CUPTI wrote it, byte by byte.

    cut.py WHOLE.bin SMALL.bin [N]      N: 50

Lengths are those of CUDA 13.0 (tests/fake_cuda/cupti_records.cpp); of another version it ends."""
import pathlib
import struct
import sys

HEAD_BYTES, VERSION_AT, UNIT, BUFFER = 16, 8, 8, 1
LENGTHS = {1: 96, 2: 88, 4: 40, 5: 40, 10: 216, 17: 56, 22: 96, 38: 56, 39: 24, 51: 56}


def records(buffer):
    at = 0
    while at < len(buffer):
        length = LENGTHS[struct.unpack_from("<I", buffer, at)[0]]
        yield buffer[at:at + length]
        at += length


def parts(fixture):
    """(what it is, its bytes) of each."""
    at = HEAD_BYTES
    while at < len(fixture):
        part, length = struct.unpack_from("<II", fixture, at)
        yield part, fixture[at + 8:at + 8 + length]
        at += 8 + (length + UNIT - 1) // UNIT * UNIT


def cut(whole, count):
    if struct.unpack_from("<I", whole, VERSION_AT)[0] // 100 != 1300:
        sys.exit("not of CUDA 13.0")
    small = whole[:HEAD_BYTES]
    for part, body in parts(whole):
        if part == BUFFER:
            kept = list(records(body))
            body = b"".join(kept[:count] + kept[max(count, len(kept) - count):])
        small += struct.pack("<II", part, len(body)) + body + bytes(-len(body) % UNIT)
    return small


if __name__ == "__main__":
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    pathlib.Path(sys.argv[2]).write_bytes(cut(pathlib.Path(sys.argv[1]).read_bytes(), number))
