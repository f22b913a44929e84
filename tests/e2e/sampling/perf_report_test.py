"""The functions that perf record finds hottest, in a run that both watch: each has the share of the
samples that perf report gives it, within the error of sampling."""
import collections
import math
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from sampling import Samples, skip_without_perf

import aon_test
from aon_test import PYTHON, mpirun, run

HERE = pathlib.Path(__file__).resolve().parent
RATE_HZ = 499
TOP = 5
LEAST_SHARE = 0.01
LAMMPS = """
units lj
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
run 700
"""


def plain(name):
    """Without arguments and what the compiler adds to clones; code without a name is its file's."""
    module = re.match(r"(.*)\+0x[0-9a-f]+$", name)
    if module:
        return module[1]
    return re.sub(r"\.(constprop|isra|part|cold|avx2|fma)\b.*$", "", name.split("(")[0])


def by_perf(data, command):
    """{function: samples} in user mode."""
    done = run(["perf", "report", "-i", data, "--comm", command, "--no-children", "-g", "none",
                "-F", "sample,symbol,dso", "-t", "|", "--stdio", "-q"])
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < 3 or not fields[1].startswith("[.] "):
            continue
        name = fields[1][4:]
        counts[fields[2] if name.startswith("0x") else plain(name)] += int(fields[0])
    return counts


def by_aon(output):
    counts = collections.Counter()
    for name, count in Samples(output).by_function().items():
        counts[plain(name)] += count
    return counts


@unittest.skipIf(shutil.which("perf") is None, "perf is not installed")
class PerfReport(aon_test.TestCase):
    def compare(self, command, *program):
        output, data = self.folder / "out", self.folder / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", RATE_HZ, "-o", data, "--"]
        done = mpirun(1, *record, "aon-run", "-o", output, "--sampling", RATE_HZ,
                      "--budget", "100", "--", *program)
        if "perf_event_paranoid" in done.stderr:
            self.skipTest("perf may not record here")
        self.assert_exit(done)
        theirs, ours = by_perf(data, command), by_aon(output)
        least = LEAST_SHARE * sum(theirs.values())
        top = [name for name, count in theirs.most_common(TOP) if count >= least]
        self.assertGreater(len(top), 1, theirs)
        their_sum = sum(theirs[name] for name in top)
        our_sum = sum(ours[name] for name in top)
        self.assertGreater(their_sum, RATE_HZ, "too short a run")
        self.assertGreater(our_sum, RATE_HZ, ours)
        for name in top:
            share, own = theirs[name] / their_sum, ours[name] / our_sum
            error = math.sqrt(share * (1 - share) * (1 / their_sum + 1 / our_sum))
            print(f"{name:60} perf {100 * share:5.1f} %  aon {100 * own:5.1f} %")
            self.assertAlmostEqual(own, share, delta=5 * error + 0.01, msg=name)

    @unittest.skipIf(shutil.which("lmp") is None, "LAMMPS is not installed")
    def test_lammps(self):
        script = self.folder / "in.lj"
        script.write_text(LAMMPS)
        self.compare("lmp", "lmp", "-in", script, "-log", "none")

    def test_numpy_with_mpi4py(self):
        self.compare("python3", PYTHON, HERE / "numpy_mix.py", 5)


if __name__ == "__main__":
    skip_without_perf()
    aon_test.main()
