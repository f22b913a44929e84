#!/usr/bin/python3
"""Messages between two groups, in the archive: both ends name the same communicator and the world
ranks that the program meant, and nobody's reader objects. And between two jobs that connect.

    intercommunicators_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py  # noqa: E402
import otf2  # noqa: E402

import readers  # noqa: E402
from aon_test import (  # noqa: E402
    MPI,
    MPI_LAUNCHER,
    TestCase,
    environment,
    ledger,
    profile,
    run,
    wait_until,
)

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
INT = 4
EVENS, ODDS = [4, 2, 0], [3, 1]
SENDS = (otf2.events.MpiSend, otf2.events.MpiIsend)
RECEIVES = (otf2.events.MpiRecv, otf2.events.MpiIrecv)


def between(evens, odds):
    """(source, destination, tag) of programs/intercommunicators.c, as world ranks."""
    told = collections.Counter()
    for number, rank in enumerate(evens):
        told.update((rank, odds[number % 2], tag) for tag in (1, 2, 3, 4))
    for pair in zip(evens, odds):
        told.update([(*pair, 5), (*reversed(pair), 5)])
    return told


def within(members):
    following = members[1:] + members[:1]
    return collections.Counter((a, b, 6) for a, b in zip(members, following))


EXPECTED = {
    "first": between(EVENS, ODDS),
    "second": between(EVENS, ODDS),
    "copy": between(EVENS, ODDS),
    "part": between(EVENS[::-1], ODDS[::-1]),
    "odds first": within(ODDS + EVENS),
    "odds last": within(EVENS + ODDS),
}
COLLECTIVES = {"BARRIER": 2, "BCAST": 1, "ALLREDUCE": 1, "ALLGATHER": 1, "GATHER": 1}


class InterCommunicators(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.output = case.folder / "job"
        case.assert_exit(profile(5, cls.output, PROGRAMS / "intercommunicators"))
        cls.sent = collections.defaultdict(collections.Counter)
        cls.received = collections.defaultdict(collections.Counter)
        cls.collectives = collections.defaultdict(collections.Counter)
        cls.roots = collections.defaultdict(set)
        with otf2.reader.open(str(cls.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                cls.note(location.group._ref, event)

    @classmethod
    def note(cls, own, event):
        if isinstance(event, SENDS):
            peer = cls.world_rank(event.communicator, event.receiver)
            cls.sent[event.communicator.name][own, peer, event.msg_tag] += 1
        elif isinstance(event, RECEIVES):
            peer = cls.world_rank(event.communicator, event.sender)
            cls.received[event.communicator.name][peer, own, event.msg_tag] += 1
        elif isinstance(event, (otf2.events.MpiCollectiveEnd,
                                otf2.events.NonBlockingCollectiveComplete)):
            name = str(event.collective_op).rpartition(".")[2]
            cls.collectives[event.communicator.name, own][name] += 1
            if event.root < len(event.communicator.group.members):
                root = cls.world_rank(event.communicator, event.root)
                cls.roots[event.communicator.name, name].add((own, root))

    @staticmethod
    def world_rank(communicator, rank):
        return communicator.group.members[rank].group._ref

    def test_messages_have_the_ends_that_the_program_meant(self):
        for name, expected in EXPECTED.items():
            self.assertEqual(self.sent[name], expected, name)
            self.assertEqual(self.received[name], expected, name)

    def test_every_member_took_part_in_the_collectives(self):
        for name in ("first", "second", "copy", "part"):
            for rank in range(5):
                seen = {op: n for op, n in self.collectives[name, rank].items()
                        if op in COLLECTIVES}
                self.assertEqual(seen, COLLECTIVES, f"{name}, rank {rank}")

    def test_the_root_is_told_by_all_who_know_it(self):
        """The others of its own group are told by MPI only that it is one of them."""
        for name in ("first", "second", "copy"):
            self.assertEqual(self.roots[name, "BCAST"], {(2, 2), (1, 2), (3, 2)}, name)
            self.assertEqual(self.roots[name, "GATHER"], {(3, 3), (0, 3), (2, 3), (4, 3)}, name)

    def test_readers_have_nothing_to_say(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        count = sum(sum(c.values()) for c in EXPECTED.values())
        self.assertEqual(readers.otf2_messages(self, self.output), count)

    def test_ledger(self):
        document = ledger(self.output)
        self.assert_law(document)
        self.assertEqual(document["losses"], [])
        self.assertTrue(document["assembly"]["communication_complete"])
        self.assertEqual(document["assembly"]["unmatched"], 0)


class Connected(TestCase):
    """programs/connected.c: two launches that know nothing of each other but a port."""

    ROLES = ("server", "client")
    DOUBLE = 8

    def setUp(self):
        super().setUp()
        self.launcher = [MPI_LAUNCHER]
        if MPI == "openmpi":
            self.start_name_server()

    def start_name_server(self):
        """Launches of Open MPI find each other by it."""
        uri = self.folder / "uri"
        server = subprocess.Popen(["ompi-server", "--no-daemonize", "-r", str(uri)],
                                  env=environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_until(lambda: uri.exists() and uri.read_text().endswith("\n"), what="ompi-server")
        self.launcher += ["--ompi-server", f"file:{uri}"]

    def launch(self, name, words_of):
        """Both jobs at once, with one file of the port's name; {role: process}."""
        port = self.folder / name
        done = {}

        def one(role):
            command = [*self.launcher, "-n", 2, *words_of(role), PROGRAMS / "connected", role, port]
            done[role] = run(command, timeout_s=90)

        threads = [threading.Thread(target=one, args=(role,)) for role in self.ROLES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done

    def test_two_jobs_that_connect_keep_to_themselves(self):
        if MPI == "mpich":
            opened = run([*self.launcher, "-n", 1, PROGRAMS / "connected", "port"])
            if opened.returncode != 0:
                self.skipTest("this MPICH opens no ports, without AON either")
        plain = self.launch("plain", lambda role: [])
        profiled = self.launch("port", lambda role: ["aon-run", "-o", self.folder / role, "--"])
        for role in self.ROLES:
            self.assert_exit(plain[role])
            self.assert_exit(profiled[role])
            self.assertEqual(profiled[role].stdout, plain[role].stdout)
            self.assert_own_part(self.folder / role, has_joined="joined" in plain[role].stdout)

    def assert_own_part(self, output, has_joined):
        """What goes to the other job is counted and left out; its own message stays."""
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual(document["losses"], [])
        self.assertEqual([rank["rank"] for rank in document["ranks"]], [0, 1])
        # Each rank sends and receives one, and takes part in two collectives.
        self.assertEqual(document["assembly"]["unmatched"], 2 * 4 + (1 if has_joined else 0))
        self.assertFalse(document["assembly"]["communication_complete"])
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        self.assertEqual(readers.otf2_messages(self, output), 1)
        with h5py.File(output / "profile.h5") as file:
            kinds = collections.Counter(file["communicators/kind"].asstr()[()])
            calls = dict(zip(file["regions/name"].asstr()[()], range(10**6)))
        expected = {"inter of several worlds": 1 + has_joined, "intra of several worlds": 1}
        self.assertEqual({k: n for k, n in kinds.items() if "several" in k}, expected)
        self.assertIn("MPI_Comm_disconnect", calls)


if __name__ == "__main__":
    unittest.main(verbosity=2)
