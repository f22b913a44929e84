"""Runs of gpu_program over the made-up driver and CUPTI, shared by the tests of this folder."""
import collections
import io
import multiprocessing
import pathlib
import sys
import unittest

import h5py
import otf2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import readers  # noqa: E402
from aon_test import BUILD, TestCase, environment, ledger, profile  # noqa: E402

PROGRAM = BUILD / "bin" / "gpu_program"
FAKES = BUILD / "lib" / "fake_cuda"
FAKE_NVML = BUILD / "lib" / "fake_nvml"
KERNELS = {"saxpy(float*, float*, float, int)", "reduce", "void lib::gemm<float>(float const*)"}


def gpu_environment(**changes):
    """Made-up work comes faster than a device could do it: without a limit of its cost."""
    return environment(**{"LD_LIBRARY_PATH": FAKES, "AON_BUDGET": 100, **changes})


def counts(process):
    """What each rank counted itself: {rank: {"kernels": 200, ...}}."""
    result = {}
    for line in process.stdout.splitlines():
        words = line.split()
        if words[:1] == ["rank"]:
            pairs = zip(words[2::2], map(int, words[3::2]))
            result[int(words[1])] = dict(pairs)
    return result


def text(value):
    return value.decode() if isinstance(value, bytes) else value


class GpuCase(TestCase):
    def run_program(self, *arguments, ranks=2, program=PROGRAM, options=(), **knobs):
        self.output = self.folder / "job"
        self.process = profile(ranks, self.output, program, *arguments, options=options,
                               env=gpu_environment(**knobs))
        self.assert_exit(self.process)
        self.counted = counts(self.process)
        self.assertEqual(set(self.counted), set(range(ranks)))

    def provider(self, rank=0):
        ranks = {r["rank"]: r for r in ledger(self.output)["ranks"]}
        return ranks[rank]["providers"]["cupti"]

    def table(self, name):
        with h5py.File(self.output / "profile.h5") as file:
            group = file["gpu"][name]
            columns = {c: [text(v) for v in group[c][()]] for c in group
                       if c not in ("row", "bucket", "axis")}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def kernel_counts(self):
        """Of each rank, without the nodes of graphs."""
        result = collections.Counter()
        for row in self.table("kernels"):
            if row["name"] != "graph_node":
                result[row["rank"]] += row["count"]
        return result

    def streams(self):
        """{rank: {stream's location: [(time, region, is_enter)]}} of the archive."""
        result = collections.defaultdict(lambda: collections.defaultdict(list))
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if location.type != otf2.LocationType.GPU:
                    continue
                is_enter = isinstance(event, otf2.events.Enter)
                if not is_enter and not isinstance(event, otf2.events.Leave):
                    continue
                rank = location.group.creating_location_group._ref
                result[rank][location.name].append((event.time, event.region.name, is_enter))
        return result

    def assert_all_kernels(self):
        expected = {rank: c["kernels"] for rank, c in self.counted.items()}
        self.assertEqual(dict(self.kernel_counts()), expected)
        for rank, streams in self.streams().items():
            entered = sum(is_enter and region in KERNELS
                          for events in streams.values() for _, region, is_enter in events)
            self.assertEqual(entered, expected[rank])

    def assert_archive_is_clean(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        readers.hdf5(self, self.output)
        self.assert_law(ledger(self.output))


def run_alone(name):
    """Whether the test succeeds, and what it says."""
    said = io.StringIO()
    tests = unittest.defaultTestLoader.loadTestsFromName(name, sys.modules["__main__"])
    result = unittest.TextTestRunner(said, verbosity=2).run(tests)
    return result.wasSuccessful(), said.getvalue()


def run_side_by_side(count):
    """All tests of the file, `count` at a time, each in a process of its own: they mostly sleep."""
    classes = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    names = [test.id().split(".", 1)[1] for tests in classes for test in tests]
    with multiprocessing.get_context("fork").Pool(count, maxtasksperchild=1) as pool:
        results = list(pool.imap(run_alone, reversed(names), chunksize=1))  # the longest are last
    print("".join(said for _, said in results), file=sys.stderr)
    sys.exit(not results or not all(is_well for is_well, _ in results))


def main(side_by_side=1):
    if not PROGRAM.exists():
        print("no gpu_program: MPI was not there when AON was built")
        sys.exit(77)
    if side_by_side > 1 and sys.argv[1:] in ([], ["-v"]):
        run_side_by_side(side_by_side)
    unittest.main(verbosity=2)
