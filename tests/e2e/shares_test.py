"""`aon finalize --jobs`: an archive made in shares says what that of one process says, to the last
event, row and sentence; whatever goes wrong with shares, one process does all."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import h5py
import numpy

from aon_test import BUILD, SOURCE, TestCase, environment, ledger, profile, run, wait_until

PROGRAMS = SOURCE / "tests" / "e2e" / "programs"
JOBS = ("--jobs", 3)
# What is about the assembly and not about the job.
OWN_KEYS = (("assembly", "seconds"), ("budget", "disk_used_bytes"))


def attributes(entry):
    """Names and values; references to other entries by what they are of."""
    return {name: str(numpy.asarray(value).tolist()) for name, value in entry.attrs.items()
            if "LIST" not in name and name != "_Netcdf4Dimid"}


def tables(path):
    """Every dataset and attribute of an HDF5 file, also behind its links."""
    found = {}

    def visit(name, group):
        found[name] = attributes(group)
        for key in group:
            entry = group[key]
            if isinstance(entry, h5py.Group):
                visit(f"{name}/{key}", entry)
            else:
                values = entry[()]
                text = values.tobytes() if values.dtype.kind in "iuf" else str(values.tolist())
                found[f"{name}/{key}"] = (str(entry.dtype), text, attributes(entry))

    with h5py.File(path) as file:
        visit("", file)
    return found


def printed(anchor):
    """All of an archive, as otf2-print says it: definitions, events, mappings of locations."""
    done = run(["otf2-print", "-A", "--show-mappings", "--show-clock-offsets", anchor])
    return [line for line in done.stdout.splitlines() if not line.startswith("Trace identifier")]


class Shares(TestCase):
    maxDiff = 2000

    def contents(self):
        """Everything a result says."""
        document = ledger(self.output)
        for part, key in OWN_KEYS:
            document[part].pop(key)
        samples = self.output / "samples" / "traces.otf2"
        return {
            "ledger": document,
            "tables": tables(self.output / "profile.h5"),
            "archive": printed(self.output / "traces.otf2"),
            "samples": printed(samples) if samples.exists() else None,
        }

    def finalize(self, *options, code=0):
        done = run(["aon", "finalize", *options, self.output])
        self.assert_exit(done, code)
        return done

    def assert_same_lines(self, one, other):
        """Millions of lines: only the first that differs is shown."""
        if one == other:
            return
        for first, second in zip(one, other):
            self.assertEqual(first, second)
        self.assertEqual(len(one), len(other))

    def assert_same(self):
        self.finalize()
        whole = self.contents()
        self.finalize(*JOBS)
        shares = self.contents()
        self.assertEqual(whole["ledger"], shares["ledger"])
        self.assertGreater(len(whole["archive"]), 100)
        self.assert_same_lines(whole["archive"], shares["archive"])
        self.assert_same_lines(whole["samples"] or [], shares["samples"] or [])
        self.assertEqual(sorted(whole["tables"]), sorted(shares["tables"]))
        for name, table in whole["tables"].items():
            self.assertEqual(table, shares["tables"][name], name)
        self.assertTrue(list((self.output / "series").glob("part-*.h5")))
        self.assertFalse(list(self.output.glob(".assemble-*")))

    def profile(self, ranks, *command, **more):
        self.output = self.folder / "job"
        self.assert_exit(profile(ranks, self.output, *command, cwd=self.folder, **more))

    def test_steps_and_samples(self):
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 300, "--size", 1200, "--slow-rank", 2,
                     "--slow-factor", 3)
        self.assert_same()

    def test_messages_and_collectives(self):
        shutil.copy(PROGRAMS / "hpccinf.txt", self.folder)
        self.profile(4, "hpcc")
        self.assert_same()


if __name__ == "__main__":
    unittest.main()
