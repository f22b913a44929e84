#!/usr/bin/python3
"""Communicators whose making is not seen by all alike (programs/identities.c): what all saw has one
identity, and what nobody can tell apart is never taken for one.

    identities_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import otf2
from mpi_test import PROGRAMS, MpiTest

import readers  # noqa: E402  (mpi_test has set the path)
from aon_test import TestCase, ledger, profile

INT = 4
MEMBERS = {
    "idup before": [0, 1, 2, 3],
    "dup": [0, 1, 2, 3],
    "dup with info": [0, 1, 2, 3],
    "idup": [0, 1, 2, 3],
    "child of idup": [0, 1, 2, 3],
    "node": [0, 1, 2, 3],
    "create": [3, 2],
    "group": [3, 2],
    "cart": [0, 1, 2, 3],
    "idup of cart": [0, 1, 2, 3],
    "graph": [0, 1, 2, 3],
    "ring": [0, 1, 2, 3],
    "inter": [2, 0, 3, 1],
    "idup of inter": [2, 0, 3, 1],
    "merged": [2, 0, 3, 1],
    "idup behind": [0, 1, 2, 3],
    "after": [0, 1, 2, 3],
    "after idup": [0, 1, 2, 3],
}


class Pause(MpiTest):
    """One rank records nothing while communicators are made."""

    def test_members_agree(self):
        ranks = self.launch(4, "identities", "pause", is_whole=False)
        seen = {}
        for name, members in MEMBERS.items():
            own = {r: ranks[r].communicator(name) for r in members}
            identities = {c.identity for c in own.values()}
            self.assertEqual(len(identities), 1, name)
            self.assertEqual([own[r].rank for r in members], list(range(len(members))), name)
            self.assertEqual({c.size for c in own.values()}, {len(members)}, name)
            self.assertEqual({c.unseen_count for c in own.values()}, {0}, name)
            self.assertTrue(all(c.is_freed for c in own.values()), name)
            self.assertNotIn(identities.copy().pop(), seen, name)
            seen[identities.pop()] = name

    def test_parts_and_copies_of_self_differ(self):
        ranks = self.launch(4, "identities", "pause", is_whole=False)
        for name, groups in (("line", [{0, 1}, {2, 3}]), ("split", [{0, 2}, {1, 3}])):
            own = {r: ranks[r].communicator(name).identity for r in ranks}
            told = [{r for r in own if own[r] == one} for one in set(own.values())]
            self.assertEqual(sorted(told, key=min), groups, name)
        self.assertEqual(len({f.communicator("self").identity for f in ranks.values()}), 4)

    def test_windows_and_files(self):
        ranks = self.launch(4, "identities", "pause", is_whole=False)
        self.assertEqual(len({w.identity for f in ranks.values() for w in f.windows.values()}), 1)
        openings = {tuple(f.identity for f in file.files.values()) for file in ranks.values()}
        self.assertEqual(len(openings), 1)
        self.assertEqual(len(set(openings.pop())), 2)


class Callback(MpiTest):
    """Made within the call that makes another one."""

    def test_copies_that_callbacks_make_are_seen(self):
        ranks = self.launch(4, "identities", "callback")
        self.assertEqual(sum(self.assert_messages_match(ranks).values()), 12)
        copies = [[ranks[r].communicator(name) for r in range(4)]
                  for name in ("first copied", "second copied")]
        self.assertEqual([len({c.identity for c in own}) for own in copies], [1, 1])
        self.assertNotEqual(copies[0][0].identity, copies[1][0].identity)
        self.assertEqual({c.unseen_count for own in copies for c in own}, {0})


class Unseen(MpiTest):
    """Nobody saw them made."""

    def test_one_of_its_members_is_known_by_them(self):
        ranks = self.launch(4, "identities", "lone", "pause", is_whole=False)
        self.assertEqual(sum(self.assert_messages_match(ranks).values()), 8)
        for name in ("pair", "copy", "second copy"):
            own = [ranks[r].communicator(name) for r in range(4)]
            self.assertEqual([c.unseen_count for c in own], [1] * 4)
            self.assertEqual(own[0].identity, own[1].identity)
            self.assertEqual(own[2].identity, own[3].identity)
            self.assertNotEqual(own[1].identity, own[2].identity)
        for file in ranks.values():
            self.assertEqual(file.providers, [(1, "mpi", "", "")])

    def test_those_of_the_same_members_are_counted(self):
        ranks = self.launch(4, "identities", "several")
        for rank, file in ranks.items():
            names = ["first", "second", "third"]
            own = [file.communicator(names[(i + rank) % 3]) for i in range(3)]
            self.assertEqual([c.unseen_count for c in own], [1, 2, 3])
            reason = "{}{} communicators that were made unseen (by PMPI names) have the members " \
                     "of others: what is sent there is not matched"
            remedy = "make them by MPI_ names"
            self.assertEqual(file.providers, [
                (1, "mpi", "", ""), (2, "mpi", reason.format("at least ", 1), remedy),
                (2, "mpi", reason.format("", 4), remedy)])

    def test_what_only_some_have_met_moves_no_count(self):
        ranks = self.launch(4, "identities", "counted")
        self.assertEqual(ranks[0].communicator("counted").identity,
                         ranks[1].communicator("counted").identity)


class Archive(TestCase):
    """Of a job whose communicators nobody can tell apart."""

    def test_nothing_is_taken_for_another(self):
        output = self.folder / "job"
        self.assert_exit(profile(4, output, PROGRAMS / "identities", "several"))
        document = ledger(output)
        self.assert_law(document)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        self.assertEqual(readers.otf2_messages(self, output), 4, "those of MPI_COMM_WORLD")
        self.assertFalse(document["assembly"]["communication_complete"])
        # Each member's ends of six messages, and its part in making and freeing.
        self.assertGreaterEqual(document["assembly"]["unmatched"], 4 * 6 * 2)
        for rank in document["ranks"]:
            told = rank["providers"]["mpi"]
            self.assertEqual(told["state"], "degraded")
            self.assertRegex(told["reason"], "^4 communicators that were made unseen")

    def test_one_of_its_members_is_matched(self):
        output = self.folder / "job"
        self.assert_exit(profile(4, output, PROGRAMS / "identities", "lone"))
        document = ledger(output)
        self.assert_law(document)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        self.assertEqual(readers.otf2_messages(self, output), 8)
        with otf2.reader.open(str(output / "traces.otf2")) as trace:
            names = sorted(c.name for c in trace.definitions.comms)
        for name in ("pair", "copy", "second copy"):
            self.assertEqual(names.count(name), 2)


if __name__ == "__main__":
    unittest.main()
