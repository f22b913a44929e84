#!/usr/bin/python3
"""Messages that a program sends from callbacks, inside other calls, are not recorded: the ledger
says so. What a library calls itself by MPI_ names is no such message.

    callbacks_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

from mpi_test import PROGRAMS

from aon_test import TestCase, ledger, profile


class Callbacks(TestCase):
    def providers(self, program, *arguments):
        """What the ledger says of `mpi` on each of two ranks, and of all their messages."""
        output = self.folder / "job"
        self.assert_exit(profile(2, output, PROGRAMS / program, *arguments, timeout_s=90))
        document = ledger(output)
        ranks = [rank["providers"]["mpi"] for rank in document["ranks"]]
        return ranks, document["assembly"]["communication_complete"]

    def test_messages_inside_other_calls_are_missing(self):
        (first, second), is_complete = self.providers("callbacks")
        self.assertEqual((first["state"], second["state"]), ("degraded", "on"))
        self.assertIn("2 sends, receives and collectives were called inside other MPI calls",
                      first["reason"])
        self.assertIn("outside of callbacks", first["remedy"])
        self.assertFalse(is_complete)

    def test_what_a_library_calls_itself_is_not_missing(self):
        ranks, _ = self.providers("files", self.folder)
        self.assertEqual([rank["state"] for rank in ranks], ["on", "on"])


if __name__ == "__main__":
    unittest.main()
