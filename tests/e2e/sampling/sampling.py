"""What the tests of sampling share: where the samples of a job directory hit."""
import collections
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py

from aon_test import BUILD, SKIPPED, ledger, profile, run, skip_without_share

HOT = BUILD / "bin" / "sampling_hot"
WITHOUT_FP = BUILD / "bin" / "sampling_hot_without_fp"
SWITCHING = BUILD / "bin" / "sampling_switching"
JIT = BUILD / "bin" / "sampling_jit"
NO_PERF = BUILD / "bin" / "no_perf"
# The tests look at samples, not at what they cost a machine that is busy with other tests.
UNBOUNDED = ("--budget", "100")


def skip_without_perf():
    """Ends the test as skipped where this machine refuses samples, and says why."""
    skip_without_share()
    with tempfile.TemporaryDirectory(prefix="aon-test-") as folder:
        profile(1, pathlib.Path(folder) / "out", HOT, 10)
        node = ledger(pathlib.Path(folder) / "out")["nodes"][0]["providers"]["sampling"]
    if node["state"] == "off":
        print("skipped:", node["reason"], file=sys.stderr)
        sys.exit(SKIPPED)


class Samples:
    """/functions, /callpaths and /samples of profile.h5."""

    def __init__(self, output):
        with h5py.File(pathlib.Path(output) / "profile.h5") as file:
            self.names = [name.decode() for name in file["functions/name"]]
            self.files = [name.decode() for name in file["functions/file"]]
            self.parents = [int(p) for p in file["callpaths/parent"]]
            self.functions = [int(f) for f in file["callpaths/function"]]
            self.lines = [int(line) for line in file["callpaths/line"]]
            self.self_counts = [int(c) for c in file["callpaths/self_count"]]
            self.total_counts = [int(c) for c in file["callpaths/total_count"]]
            columns = ("rank", "tid", "callpath", "count")
            self.rows = list(zip(*(file[f"samples/{c}"][:].astype(int) for c in columns)))
            self.attributes = dict(file["samples"].attrs)

    def path(self, node):
        """Names of a path, outermost first."""
        names = []
        while node >= 0:
            names.append(self.names[self.functions[node]])
            node = self.parents[node]
        return names[::-1]

    def by_function(self, rank=None):
        counts = collections.Counter()
        for row_rank, _, node, count in self.rows:
            if rank in (None, row_rank):
                counts[self.names[self.functions[node]]] += count
        return counts

    def count(self):
        return sum(row[3] for row in self.rows)


def folded(output, *options):
    """{stack: count} as `aon export --folded` prints it."""
    done = run(["aon", "export", output, "--folded", "-", *options])
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return {stack: int(count) for stack, count in lines}
