"""What a reader of CUPTI's buffers could see of them, times apart: so the made-up CUPTI
(tests/fake_cuda) is held against a device's, one that was recorded and one that is at hand.
"""
import os
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from aon_test import BUILD, environment, run  # noqa: E402

sys.path.insert(0, str(HERE.parent / "replay" / "cupti"))
import cut  # noqa: E402

PLAN = ("busy:1", "copy:0.2", "transfer:0.2")
KERNEL_US = 1750  # of the made-up device; gpu_busy's on an H200


def record(folder, libraries):
    """The fixture of a run of gpu_busy with the driver and CUPTI of `libraries`."""
    words = ["aon-run", "-o", f"{folder}/job", "--budget", "100", "--record-fixture",
             f"{folder}/kept", "--", BUILD / "bin" / "gpu_busy", *PLAN]
    knobs = {name: None for name in os.environ if name.startswith("FAKE_")}
    knobs["FAKE_CUDA_DURATION_US"] = KERNEL_US
    variables = environment(LD_LIBRARY_PATH=libraries, **knobs)
    done = run(words, env=variables)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    [kept] = pathlib.Path(folder, "kept").iterdir()
    return kept.read_bytes()


def version(fixture):
    """CUPTI's, of its head."""
    return word(fixture, cut.VERSION_AT)


def word(record, at):
    return struct.unpack_from("<I", record, at)[0]


def correlation(record):
    places = {1: 44, 4: 32, 10: 92, 17: 40, 38: 24}
    return word(record, places[word(record, 0)])


class Shape:
    """What does not depend on times of a recorded run of gpu_busy: how records of CUPTI follow on
    one another, and fields that are the same in all of them."""

    def __init__(self, fixture):
        buffers = [list(cut.records(body)) for part, body in cut.parts(fixture)
                   if part == cut.BUFFER]
        of_work = [b for b in buffers if any(word(r, 0) != 17 for r in b)]
        self.follow = set()  # (kind, the next one's, whether both are of one call)
        self.waits = set()
        for buffer in of_work:
            told = [r for r in buffer if word(r, 0) != 17]
            self.follow |= {(word(a, 0), word(b, 0), correlation(a) == correlation(b))
                            for a, b in zip(told, told[1:])}
            self.waits |= {r[32:] for r in told if word(r, 0) == 38}
        # Which overhead a buffer begins with: that of its request is behind its first record.
        self.begins = {(word(b[1], 4), correlation(b[0]) == correlation(b[1]))
                       for b in of_work[1:]}
        others = [[(word(r, 4), word(r, 8), correlation(r)) for r in b]
                  for b in buffers if b not in of_work]
        self.flushes = set(tuple(b[:2]) for b in others)
        self.first = {word(r, 4) for r in of_work[0] if word(r, 0) == 17}
        self.threads = len({word(r, 16) for b in buffers for r in b if word(r, 0) == 17})


def assert_alike(case, made, real):
    """Fails where the made-up CUPTI tells what a device does not; what only some runs of a device
    have (the order of what several threads do) need not be in both."""
    case.assertLessEqual(made.follow, real.follow)
    case.assertLessEqual({(10, 4, True), (1, 4, True), (38, 4, True), (4, 38, False)}, made.follow)
    case.assertEqual(made.waits, real.waits)
    case.assertEqual(made.begins, real.begins)
    case.assertEqual(made.flushes, real.flushes)
    case.assertEqual(made.threads, real.threads)
    case.assertLessEqual(made.first, real.first)
