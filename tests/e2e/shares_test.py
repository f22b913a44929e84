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
# What depends on the assembly and not on the job.
OWN_KEYS = ("assembly_seconds", "disk_used_bytes")


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
    return done.stdout.splitlines()


class Shares(TestCase):
    maxDiff = 2000

    def contents(self):
        """Everything a result says."""
        document = ledger(self.output)
        told = json.dumps(document, sort_keys=True)
        for key in OWN_KEYS:
            self.assertIn(f'"{key}"', told)
        samples = self.output / "samples" / "traces.otf2"
        return {
            "ledger": without(document, OWN_KEYS),
            "tables": tables(self.output / "profile.h5"),
            "archive": printed(self.output / "traces.otf2"),
            "samples": printed(samples) if samples.exists() else None,
        }

    def finalize(self, *options, code=0):
        done = run(["aon", "finalize", *options, self.output])
        self.assert_exit(done, code)
        return done

    def assert_same(self):
        self.finalize()
        whole = self.contents()
        self.finalize(*JOBS)
        shares = self.contents()
        self.assertEqual(whole["ledger"], shares["ledger"])
        self.assertGreater(len(whole["archive"]), 100)
        self.assertEqual(whole["archive"], shares["archive"])
        self.assertEqual(whole["samples"], shares["samples"])
        self.assertEqual(sorted(whole["tables"]), sorted(shares["tables"]))
        for name, table in whole["tables"].items():
            self.assertEqual(table, shares["tables"][name], name)
        self.assertTrue(list((self.output / "series").glob("part-*.h5")))
        self.assertFalse(list(self.output.glob(".assemble-*")))

    def profile(self, ranks, *command, **more):
        self.output = self.folder / "job"
        self.assert_exit(profile(ranks, self.output, *command, cwd=self.folder, **more))

    def test_steps_and_samples(self):
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 60, "--size", 600, "--slow-rank", 2)
        self.assert_same()

    def test_messages_and_collectives(self):
        shutil.copy(PROGRAMS / "hpccinf.txt", self.folder)
        self.profile(4, "hpcc")
        self.assert_same()


def without(document, keys):
    """The ledger without what is about its own making."""
    if isinstance(document, dict):
        return {k: without(v, keys) for k, v in document.items() if k not in keys}
    if isinstance(document, list):
        return [without(v, keys) for v in document]
    return document


if __name__ == "__main__":
    unittest.main()
