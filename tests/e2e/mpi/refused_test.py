#!/usr/bin/python3
"""Calls that MPI refuses, in programs that go on.

    refused_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import MPI, MpiTest


class Refused(MpiTest):
    """Calls that MPI refuses."""

    def test_errors_come_from_mpi_and_change_nothing(self):
        ranks = self.launch(1, "refused")
        self.assert_counts(ranks)
        (window,) = ranks[0].windows.values()
        self.assertTrue(window.is_freed)
        known = {1, 2}  # MPI_COMM_WORLD and MPI_COMM_SELF
        self.assertEqual({c.id for c in ranks[0].communicators.values()}, known)
        for record in ranks[0].records:
            if record.kind == rf.RMA:
                self.assertEqual(record.a32, window.id)

    def test_handles_that_were_never_set(self):
        ranks = self.launch(1, "refused", "zero")
        self.assert_counts(ranks)
        records = ranks[0].records
        started = [r for r in records if r.kind == rf.MESSAGE and r.request != 0]
        completed = {r.request for r in records if r.kind == rf.COMPLETION}
        self.assertEqual(len(started), 3002)
        self.assertEqual({r.request for r in started}, completed)

    def test_creation_that_one_rank_was_refused_counts_nowhere(self):
        ranks = self.launch(2, "refused", "creations")
        made = [{c.identity for c in file.communicators.values() if c.name == "second try"}
                for file in ranks.values()]
        self.assertEqual(len(made[0]), 1)
        self.assertEqual(made[0], made[1])

    def test_result_that_is_gone_when_recording_goes_on(self):
        self.launch(2, "refused", "result", is_whole=False)


class FortranFailed(MpiTest):
    """programs/fortran_failed.F90"""

    COUNTER = "libfortran_count.so"

    def test_what_failed_has_ended_and_nothing_else(self):
        failed = {tag: 0 for tag in range(12, 70, 10)}
        whole = {tag: 4 for tag in (1, 2, *range(11, 70, 10))}
        if MPI == "openmpi":  # its Fortran does not tell how the others of the last call ended
            del whole[61]
            failed[61] = 0
        for language in ("mpif", "mpi", "f08"):
            (file,) = self.launch(1, f"fortran_failed_{language}").values()
            told = {False: {}, True: {}}
            for r in file.completions():
                if r.flags & rf.INCOMING:
                    told[bool(r.flags & rf.FAILED)][r.tag] = r.a64
            self.assertEqual(told, {False: whole, True: failed}, language)
            for path in self.folder.rglob("*.ring"):
                path.unlink()


if __name__ == "__main__":
    unittest.main()
