"""Calls of NCCL to its profiler plugin, recorded by tests/fake_nccl/call_log.cpp and made again:
the operations that come of them, as text, are NAME.expected beside NAME.RANK.calls.

`made-...` come from tests/fake_nccl; all others are of a device: `h200-CASE` are the cases of
tests/gpu/nccl_ranks.py with NCCL 2.28.9, two ranks on one H200 that talk by sockets (of graph the
first 32 KiB, of a process that was killed then). AON_UPDATE_FIXTURES=1 writes the text anew.
Record more with

    AON_NCCL_CHAIN=build/release/lib/fake_nccl/libnccl-profiler-calls.so AON_NCCL_CALLS=FOLDER \\
        AON_NCCL_LEVEL=gpu mpirun -n 2 aon-run ./program

and name the files NAME.RANK.calls.
"""
import collections
import os
import pathlib
import re
import sys
import tempfile
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from aon_test import BUILD, IS_SANITIZED, TestCase, environment, ledger, profile, run  # noqa: E402

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


def columns_of(output, name):
    with h5py.File(output / "profile.h5") as file:
        table = file[f"nccl/{name}"]
        columns = {name: table[name][()].tolist() for name in table
                   if isinstance(table[name], h5py.Dataset)}  # fmt: skip
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
        return rows, dict(table.attrs)


PROXY_OP = 8


class Order:
    """Of a text of calls: what each thread calls, by types of events; the states of each type."""

    def __init__(self, path):
        types, states = {"0": 0}, {}
        self.threads = collections.defaultdict(list)
        for line in path.read_text().splitlines()[1:]:
            _, thread, what, *rest = line.split()
            if what == "start":
                handle, _, parent, data = rest[:4]
                types[handle] = int.from_bytes(bytes.fromhex(data[:16]), "little")
                states[handle] = ()
                told = (what, types[handle], types[parent])
            elif what == "state":
                states[rest[0]] += ((int(rest[1]), rest[2] != "-"),)
                told = (what, types[rest[0]], *states[rest[0]][-1])
            else:
                told = (what, types.get(rest[0]))
            self.threads[int(thread)].append(told)
        self.states = {(types[handle], told) for handle, told in states.items()}

    def driver(self):
        (calls,) = [c for t, c in self.threads.items() if t != 1 and c[0] == ("start", 1, 0)]
        return calls

    def proxy_begin(self):
        """Up to the first step: what comes behind is in the order of the network."""
        calls = [call for call in self.threads[2] if call[1] != 64]  # channels begin at any time
        return calls[: calls.index(("start", 16, PROXY_OP))]


class Replay(TestCase):
    def run_calls(self, name, level="gpu", folder=HERE):
        ranks = len(list(folder.glob(f"{name}.*.calls")))
        output = self.folder / name
        script = f'exec "$0" replay {folder}/{name}.$OMPI_COMM_WORLD_RANK.calls'
        self.assert_exit(profile(ranks, output, "sh", "-c", script, FAKE,
                                 env=environment(AON_NCCL_LEVEL=level)))  # fmt: skip
        self.assert_law(ledger(output))
        return output

    def assert_same(self, text, expected):
        """But for times, which clocks of other rates tell as well as the rate is known."""
        times = re.compile(r"gpu_ns (\d+)")
        self.assertEqual(times.sub("gpu_ns", text), times.sub("gpu_ns", expected))
        for one, other in zip(times.findall(text), times.findall(expected)):
            self.assertLessEqual(abs(int(one) - int(other)), 2 + int(other) * 1e-4)

    def test_gives_the_operations_that_were_checked_by_hand(self):
        self.assertIn("made-every", NAMES)
        for name in NAMES:
            with self.subTest(name):
                text = operations(self.run_calls(name))
                expected = HERE / f"{name}.expected"
                if "AON_UPDATE_FIXTURES" in os.environ:
                    expected.write_text(text)
                self.assert_same(text, expected.read_text())

    def test_a_straggler_is_named_and_not_who_was_longer_connecting(self):
        output = self.run_calls("h200-straggler")  # rank 1 slept 50 ms before each of three
        told, attributes = columns_of(output, "lateness")
        caused_ns = {row["rank"]: row["caused_ns"] for row in told}
        self.assertEqual(caused_ns[0], 0)
        self.assertAlmostEqual(caused_ns[1] / 91_638_111, 1, places=3)
        self.assertEqual([row["last_count"] for row in told], [0, 2])
        self.assertEqual(attributes["operations_connecting"], 1)
        self.assertRegex("\n".join(ledger(output)["findings"]),
                         "rank 1 on .* came last to 2 of 2 operations of NCCL: .* 92 ms for it")

    def test_who_has_the_times_of_a_later_operation_has_none_and_blames_nobody(self):
        """NCCL's proxy reads an end only when three others have begun and the last one is over."""
        for rank in range(2):
            lines = (HERE / f"h200-sweep.{rank}.calls").read_text().splitlines(keepends=True)
            words = [line.split() for line in lines]
            if rank == 0:
                at = next(i for i, w in enumerate(words) if w[2:5] == ["state", "40", "22"])
                last = next(i for i, w in enumerate(words) if w[2:5] == ["state", "135", "22"])
                time_ns, thread = words[last][:2]
                lines[last] += f"{time_ns} {thread} state 40 22 {words[last][5]}\n"
                lines[last] += f"{time_ns} {thread} stop 40\n"
                stop = next(i for i, w in enumerate(words) if w[2:4] == ["stop", "40"])
                lines[at] = lines[stop] = ""
            (self.folder / f"late.{rank}.calls").write_text("".join(lines))
        output = self.run_calls("late", folder=self.folder)
        expected = (HERE / "h200-sweep.expected").read_text().splitlines(keepends=True)
        known = re.compile(r"gpu_ns \d+, gpu timed")
        expected[1] = known.sub("gpu_ns unknown, times overwritten", expected[1])
        self.assert_same(operations(output), "".join(sorted(expected)))
        told, attributes = columns_of(output, "lateness")
        self.assertEqual({row["count"] for row in told}, {4})
        self.assertEqual(attributes["operations_connecting"], 1)

    def test_the_proxies_of_sockets_send_what_a_ring_needs(self):
        told, _ = columns_of(self.run_calls("h200-sweep", "step"), "proxy")
        self.assertEqual(sorted((r["rank"], r["peer"], r["is_send"]) for r in told),
                         [(rank, 1 - rank, send) for rank in range(2) for send in range(2)])
        for row in told:
            # Of two ranks each sends and gets 2 (n - 1) / n of the bytes, by two channels.
            self.assertEqual(row["bytes"], sum(1 << power for power in range(17, 23)))
            self.assertEqual((row["count"], row["steps"], row["planned_steps"]), (12, 48, 48))

    def fake_order(self, *case):
        calls = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        plugin = BUILD / "lib" / "fake_nccl" / "libnccl-profiler-calls.so"
        self.assert_exit(run([FAKE, *case], env=environment(
            NCCL_PROFILER_PLUGIN=plugin, AON_NCCL_CALLS=calls, AON_NCCL_CALLS_MASK="4062")))
        (path,) = calls.iterdir()
        return Order(path)

    def test_the_fake_calls_in_the_order_of_the_real_one(self):
        for name, case in (("self", ("self_transfers", 5, 3)), ("sweep", ("allreduce", 5, 6))):
            with self.subTest(name):
                fake, real = self.fake_order(*case), Order(HERE / f"h200-{name}.0.calls")
                self.assertEqual(fake.threads[1], real.threads[1])
                no_network = {told for told in fake.states if told[0] != 128}
                self.assertEqual(no_network, real.states)
        self.assertEqual([call[:2] for call in fake.proxy_begin()[:8]],
                         [("start", PROXY_OP)] * 4 + [("state", PROXY_OP)] * 4)
        self.assertEqual(real.proxy_begin()[:5], fake.proxy_begin()[:5])
        # A launched graph tells of itself on a thread of the driver's.
        fake, real = self.fake_order("graph", 5, 1), Order(HERE / "h200-graph.0.calls")
        self.assertEqual(fake.driver()[:4], real.driver()[:4])

    def test_of_a_killed_program_every_call_is_kept(self):
        told = self.fake_order("killed", 5, 3).threads[1]
        self.assertEqual(told.count(("start", 512, 256)), 3)
        self.assertEqual(told[-1], ("stop", 256))

    def test_a_text_that_is_cut_off_anywhere_is_played_up_to_there(self):
        lines = (HERE / "made-every.0.calls").read_text().splitlines(keepends=True)
        for count in range(1, len(lines), 29 if IS_SANITIZED else 7):
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
