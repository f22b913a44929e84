"""Calls of NCCL to its profiler plugin, recorded by tests/fake_nccl/call_log.cpp and made again:
the operations that come of them, as text, are NAME.expected beside NAME.RANK.calls.

`made-...` come from tests/fake_nccl; all others are of a device. AON_UPDATE_FIXTURES=1 writes the
text anew. Record more with

    AON_NCCL_CHAIN=build/release/lib/fake_nccl/libnccl-profiler-calls.so AON_NCCL_CALLS=FOLDER \\
        AON_NCCL_LEVEL=gpu mpirun -n 2 aon-run ./program

and name the files NAME.RANK.calls.
"""
import os
import pathlib
import re
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from aon_test import BUILD, TestCase, environment, ledger, profile  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FAKE = BUILD / "bin" / "fake_nccl"
NAMES = sorted({path.name.split(".")[0] for path in HERE.glob("*.calls")})
COLUMNS = ("rank", "call", "sequence", "bytes", "peer", "channels")


def operations(output):
    """A line per operation, of all that is the same in each run."""
    with h5py.File(output / "profile.h5") as file:
        regions = [name.decode() for name in file["regions/name"][()]]
        table = file["nccl/operations"]
        columns = {name: table[name][()].tolist() for name in table
                   if isinstance(table[name], h5py.Dataset)}  # fmt: skip
        names = {kind: [str(n) for n in table.attrs[kind + "s"]]
                 for kind in ("type", "algorithm", "protocol")}  # fmt: skip
        flags = [str(name) for name in table.attrs["flags"]]
    lines = []
    for row in (dict(zip(columns, values)) for values in zip(*columns.values())):
        words = [regions[row["region"]]] + [f"{name} {row[name]}" for name in COLUMNS]
        words += [names[kind][row[kind]] for kind in names]
        gpu_ns = row["gpu_ns"]
        words.append(f"gpu_ns {int(gpu_ns)}" if gpu_ns == gpu_ns else "gpu_ns unknown")
        words.append("+".join(flag for i, flag in enumerate(flags) if row["flags"] >> i & 1)
                     or "no flags")
        lines.append(", ".join(words))
    return "\n".join(sorted(lines)) + "\n"


class Replay(TestCase):
    def run_calls(self, name):
        ranks = len(list(HERE.glob(f"{name}.*.calls")))
        output = self.folder / name
        script = f'exec "$0" replay {HERE}/{name}.$OMPI_COMM_WORLD_RANK.calls'
        self.assert_exit(profile(ranks, output, "sh", "-c", script, FAKE,
                                 env=environment(AON_NCCL_LEVEL="gpu")))  # fmt: skip
        self.assert_law(ledger(output))
        return operations(output)

    def assert_same(self, text, expected):
        """But for times, which clocks of other rates round in another way."""
        times = re.compile(r"gpu_ns (\d+)")
        self.assertEqual(times.sub("gpu_ns", text), times.sub("gpu_ns", expected))
        for one, other in zip(times.findall(text), times.findall(expected)):
            self.assertLessEqual(abs(int(one) - int(other)), 2)

    def test_gives_the_operations_that_were_checked_by_hand(self):
        self.assertIn("made-every", NAMES)
        for name in NAMES:
            with self.subTest(name):
                text = self.run_calls(name)
                expected = HERE / f"{name}.expected"
                if "AON_UPDATE_FIXTURES" in os.environ:
                    expected.write_text(text)
                self.assert_same(text, expected.read_text())

    def test_a_text_that_is_cut_off_anywhere_is_played_up_to_there(self):
        lines = (HERE / "made-every.0.calls").read_text().splitlines(keepends=True)
        for count in range(1, len(lines), 7):
            path = self.folder / "cut.calls"
            path.write_text("".join(lines[:count]))
            output = self.folder / f"cut{count}"
            self.assert_exit(profile(1, output, FAKE, "replay", path))

    def test_what_is_no_recording_is_refused(self):
        path = self.folder / "other.calls"
        path.write_text("something else\n")
        done = profile(1, self.folder / "job", FAKE, "replay", path)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, re.escape(str(path)) + " has no calls of NCCL")


if __name__ == "__main__":
    unittest.main(verbosity=2)
