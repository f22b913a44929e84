#!/usr/bin/python3
"""Tests of libaon-mpi.so with real MPI libraries: the programs of this folder run with the library
and, behind it, an independent PMPI counter; then the ring files that they leave without an agent
are compared with that counter and with what each program is known to do.

    mpi_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import ring_file as rf  # noqa: E402
from aon_test import BUILD, MPI, MPI_LAUNCHER, TestCase, environment, run  # noqa: E402
from aon_test import counted_calls  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
DOUBLE = 8
SENDS = {"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"}
SENDS |= {"MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Irsend"}
EXCHANGES = {"MPI_Sendrecv", "MPI_Sendrecv_replace"}
POLLS = {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe"}


class MpiTest(TestCase):
    """Runs a program once and gives each test its ring files by rank."""

    COUNTER = "libpmpi_count.so"

    def launch(self, rank_count, program, *arguments, code=0, is_whole=True):
        counters = [PROGRAMS / self.COUNTER] if self.COUNTER else []
        preload = [BUILD / "lib" / "libaon-mpi.so", *counters]
        variables = {
            "AON_OUTPUT": self.folder,
            "AON_MEMORY": "64M",
            "PMPI_COUNT": self.folder,
            "LD_PRELOAD": ":".join(map(str, preload)),
        }
        command = [MPI_LAUNCHER, "-n", rank_count, "env"]
        command += [f"{name}={value}" for name, value in variables.items()]
        self.process = run(
            [*command, PROGRAMS / program, *arguments], env=environment(), timeout_s=60
        )
        self.assert_exit(self.process, code)
        ranks = rf.read_all(self.folder)
        self.assertEqual(sorted(ranks), list(range(rank_count)))
        for file in ranks.values():
            if is_whole:
                self.assert_whole(file)
        return ranks

    def assert_whole(self, file):
        """What holds in every stream: order of commit, completions inside their call, each request
        completed once, by the thread that completed it."""
        last_end = collections.Counter()
        started = collections.Counter()
        completed = collections.Counter()
        for record in file.records:
            self.assertGreaterEqual(record.end, last_end[record.slot])
            last_end[record.slot] = record.end
            if record.flags & rf.NONBLOCKING and not record.flags & rf.FAILED:
                started[record.request] += 1
            if record.kind == rf.COMPLETION:
                self.assertTrue(record.flags & rf.INSIDE)
                completed[record.request] += 1
        self.assertEqual(started, completed)
        self.assertTrue(all(n == 1 for n in started.values()))

    def counter(self, rank):
        """{name: (calls, bytes)} of the independent counter; large-count forms and drafts under
        their plain names, as the project has them."""
        counts = collections.defaultdict(lambda: (0, 0))
        for full_name, calls, sent, _ in counted_calls(self.folder / f"rank-{rank}.txt"):
            name = full_name.removesuffix("_c").replace("MPIX_", "MPI_")
            counts[name] = (counts[name][0] + int(calls), counts[name][1] + int(sent))
        return counts

    def assert_counts(self, ranks, apart=()):
        """Every function of the program is there as often as the counter says, and bytes sent."""
        for rank, file in ranks.items():
            counted = file.counters()
            expected = self.counter(rank)
            for name, (calls, sent) in expected.items():
                if name in apart:
                    continue
                seen = file.calls(name)
                own = counted.get(name, 0) if name in counted else len(seen)
                self.assertEqual(own, calls, f"rank {rank}: {name}")
                if name in SENDS | EXCHANGES and sent is not None:
                    self.assertEqual(sum(r.a64 for r in seen), sent, f"rank {rank}: {name}")
            recorded = {r.name for r in file.records if r.is_call and r.name.startswith("MPI_")}
            parts = {"MPI_Startall: one request", "MPI_Isendrecv: receive"}
            unknown = recorded - set(expected) - parts - {"MPI_Pcontrol"}
            self.assertEqual(unknown, set(), f"rank {rank}")

    def messages(self, ranks):
        """(sent, received): multisets of (communicator, source, destination, tag, bytes)."""
        sent, received = collections.Counter(), collections.Counter()
        for file in ranks.values():
            for r in file.records:
                if r.id and r.kind not in (rf.MESSAGE, rf.EXCHANGE, rf.COMPLETION):
                    continue
                self._note_message(file, r, sent, received)
        return sent, received

    def _note_message(self, file, r, sent, received):
        communicator = file.communicators.get(r.a32)
        if communicator is None:
            return
        comm, me = communicator.identity, communicator.rank
        if r.kind == rf.EXCHANGE:
            self._add(sent, r, (comm, me, r.peer, r.tag, r.a64))
            source, tag = rf.pair(r.words[2])
            received[(comm, source, me, tag, r.words[1])] += source >= 0
        elif r.kind == rf.MESSAGE and r.flags & rf.OUTGOING:
            self._add(sent, r, (comm, me, r.peer, r.tag, r.a64))
        elif r.kind == rf.MESSAGE and not r.flags & rf.NONBLOCKING:
            self._add(received, r, (comm, r.peer, me, r.tag, r.a64))
        elif r.kind == rf.COMPLETION and r.flags & rf.INCOMING and not r.flags & rf.CANCELLED:
            self._add(received, r, (comm, r.peer, me, r.tag, r.a64))

    @staticmethod
    def _add(counter, record, key):
        if record.peer >= 0 and not record.flags & rf.FAILED:
            counter[key] += 1

    def assert_messages_match(self, ranks):
        sent, received = self.messages(ranks)
        self.assertEqual(+sent, +received)
        return +sent


class PointToPoint(MpiTest):
    """Every form of sending and receiving."""

    def test_every_form(self):
        ranks = self.launch(2, "point_to_point")
        self.assert_counts(ranks)
        sent = self.assert_messages_match(ranks)
        world = ranks[0].communicator("MPI_COMM_WORLD").identity
        for tag in [*range(1, 11), *range(13, 17)]:
            self.assertEqual(sent[(world, 0, 1, tag, tag * DOUBLE)], 1, f"tag {tag}")
        self.assertEqual(sent[(world, 1, 0, 9, 9 * DOUBLE)], 1)
        self.assertEqual(sent[(world, 0, 1, 17, 17 * DOUBLE)], 4, "persistent")
        self.assertEqual(sum(sent.values()), 14 + 2 + 1 + 8)

    def test_nothing_moves_to_nobody_and_what_was_cancelled(self):
        ranks = self.launch(2, "point_to_point")
        for file in ranks.values():
            nobody = [r for r in file.calls("MPI_Send") if r.peer < 0]
            self.assertEqual([(r.a64, r.peer) for r in nobody], [(0, rf.NO_PEER)])
            starts = file.calls("MPI_Isend")[-1:] + file.calls("MPI_Irecv")[-2:-1]
            ends = {r.request: (r.peer, r.a64) for r in file.completions()}
            for start in starts:
                self.assertEqual((start.peer, start.tag), (rf.NO_PEER, 1))
                self.assertEqual(ends[start.request], (rf.NO_PEER, 0))
            cancelled = [r for r in file.completions() if r.flags & rf.CANCELLED]
            self.assertEqual([(r.tag, r.a64) for r in cancelled], [(99, 0)])
            self.assertEqual(len(file.calls("MPI_Startall: one request")), 6)

    def test_identity_of_the_process(self):
        ranks = self.launch(2, "point_to_point")
        for rank, file in ranks.items():
            self.assertEqual([i[:3] for i in file.identities], [(rank, 2, 0), (rank, 2, 1)])
            self.assertEqual(file.providers, [(1, "mpi", "", "")])


class Requests(MpiTest):
    """Batches of requests through every Wait and Test."""

    def test_every_request_is_completed_once(self):
        for rank_count in (1, 3):
            ranks = self.launch(rank_count, "requests", 45)
            self.assert_counts(ranks)
            sent = self.assert_messages_match(ranks)
            batches = sum(1 + i * 7919 % 100 for i in range(45))
            self.assertEqual(sum(sent.values()), rank_count * batches)
            for path in self.folder.rglob("*.ring"):
                path.unlink()

    def test_polls_that_found_nothing_are_sampled(self):
        ranks = self.launch(2, "requests", 200)
        self.assert_counts(ranks)
        for file in ranks.values():
            for name in POLLS & set(file.counters()):
                sampled = [r for r in file.calls(name) if r.flags & rf.SAMPLED]
                self.assertLessEqual({r.a64 for r in sampled}, {64, 512})
                self.assertLess(len(sampled), 3 + file.counters()[name] / 32)


    def test_polls_of_what_is_not_active_are_sampled(self):
        (file,) = self.launch(1, "idle_polls").values()
        self.assert_counts({0: file})
        for name in ("MPI_Test", "MPI_Testall", "MPI_Request_get_status"):
            ended = [r for r in file.calls(name) if not r.flags & rf.SAMPLED]
            self.assertGreater(file.counters()[name], 20_000)
            self.assertLess(len(file.calls(name)), 30 + file.counters()[name] / 32, name)
            self.assertGreaterEqual(len(ended), 1, name)
        self.assertEqual(len(file.completions()), 2 * (2 + 2 + 1))


class Communicators(MpiTest):
    """Communicators are the same for all their members, and different from each other."""

    MEMBERS = {
        "dup": [0, 1, 2, 3],
        "idup": [0, 1, 2, 3],
        "three": [0, 1, 3],
        "node": [0, 1, 2, 3],
        "create": [3, 1],
        "group A": [3, 1],
        "group B": [3, 1],
        "cart": [0, 1, 2, 3],
        "even": [2, 0],
        "odd": [3, 1],
        "inter": [2, 0, 3, 1],
        "merged": [2, 0, 3, 1],
    }

    def test_members_agree(self):
        ranks = self.launch(4, "communicators")
        self.assert_counts(ranks)
        seen = {}
        for name, members in self.MEMBERS.items():
            own = {r: ranks[r].communicator(name) for r in members}
            identities = {c.identity for c in own.values()}
            self.assertEqual(len(identities), 1, name)
            self.assertEqual([own[r].rank for r in members], list(range(len(members))), name)
            self.assertEqual({c.size for c in own.values()}, {len(members)}, name)
            self.assertTrue(all(c.is_freed for c in own.values()), name)
            self.assertNotIn(identities.copy().pop(), seen, name)
            seen[identities.pop()] = name

    def test_parts_of_one_split_differ(self):
        ranks = self.launch(4, "communicators")
        lines = [ranks[r].communicator("line") for r in range(4)]
        self.assertEqual(lines[0].identity, lines[1].identity)
        self.assertEqual(lines[2].identity, lines[3].identity)
        self.assertNotEqual(lines[0].identity, lines[2].identity)

    def test_a_group_meets_on_what_it_makes(self):
        """The others of the old communicator do not call MPI_Comm_create_group."""
        ranks = self.launch(4, "communicators")
        for rank in (1, 3):
            made = [ranks[rank].communicator(name).id for name in ("group A", "group B")]
            calls = ranks[rank].calls("MPI_Comm_create_group")
            self.assertEqual([(r.kind, r.a32) for r in calls],
                             [(rf.COLLECTIVE, number) for number in made])

    def test_messages_between_groups_match(self):
        sent = self.assert_messages_match(self.launch(4, "communicators"))
        self.assertEqual(sum(sent.values()), 2)


class Life(MpiTest):
    """Errors, pauses, ends."""

    def test_errors_are_the_programs(self):
        ranks = self.launch(2, "life", "errors")
        self.assert_counts(ranks)
        for file in ranks.values():
            failed = [r for r in file.records if r.is_call and r.flags & rf.FAILED]
            names = collections.Counter(r.name for r in failed)
            expected = {"MPI_Send": 3, "MPI_Isend": 1, "MPI_Bcast": 1, "MPI_Barrier": 1}
            expected |= {"MPI_Recv": 1} if file.rank == 1 else {}
            self.assertEqual(dict(names), expected)

    def test_errors_of_single_requests(self):
        """Of many requests that are waited for at once some fail."""
        ranks = self.launch(2, "life", "failing_requests")
        self.assert_counts(ranks)
        for file in ranks.values():
            told = [(r.tag, bool(r.flags & rf.FAILED)) for r in file.completions()]
            expected = [(1, True), (2, False), (3, True), (4, False), (5, True)]
            expected += [(tag, True) for tag in (6, 7, 8, 9)]
            self.assertEqual(sorted(told), expected)

    def test_pause_and_resume(self):
        ranks = self.launch(2, "life", "pauses")
        for file in ranks.values():
            self.assertEqual(len(file.calls("MPI_Barrier")), 11)
            self.assertEqual(file.counters()["MPI_Comm_rank"], 1 + 2)
        for rank, levels in {0: [1, 0, 1, 0, 1], 1: [1, 0, 1, 1]}.items():
            told = [r.a64 for r in ranks[rank].calls("MPI_Pcontrol")]
            self.assertEqual(told, levels, "what pauses and what resumes is recorded itself")
        after = {f.communicator("after").identity for f in ranks.values()}
        self.assertEqual(len(after), 1)
        self.assertEqual(len(ranks[0].calls("MPI_Irecv")), 0)
        self.assertEqual(len(ranks[0].completions()), 0)
        self.assertEqual(len(ranks[1].completions()), 1)

    def test_derived_types_and_calls_inside_calls(self):
        ranks = self.launch(2, "life", "derived")
        self.assert_counts(ranks, apart={"MPI_Type_size"})
        for file in ranks.values():
            (exchange,) = file.calls("MPI_Sendrecv")
            self.assertEqual((exchange.a64, exchange.words[1]), (32, 32))
            self.assertNotIn("MPI_Type_size", file.counters())

    def test_abort_and_exit_without_finalize(self):
        ranks = self.launch(2, "life", "abort", code=7)
        self.assertEqual({f.identities[-1][2] for f in ranks.values()}, {0})
        self.assertEqual(len(ranks[0].calls("MPI_Barrier")), 1)
        for path in self.folder.rglob("*.ring"):
            path.unlink()
        ranks = self.launch(2, "life", "no_finalize", code=3)
        self.assertEqual({f.identities[-1][2] for f in ranks.values()}, {0})

    def test_more_requests_than_are_followed(self):
        (file,) = self.launch(1, "life", "too_many", is_whole=False).values()
        self.assertEqual([p[:2] for p in file.providers], [(1, "mpi"), (2, "mpi"), (2, "mpi")])
        for state, _, reason, remedy in file.providers[1:]:
            self.assertRegex(reason, r"^(at least )?\d+ requests are not followed: \d+ were live "
                                     r"at once; their completions are missing$")
            self.assertEqual(remedy, "complete or free requests earlier")
        unfollowed = int(re.match(r"\d+", file.providers[-1][2])[0])
        self.assertEqual(len(file.completions()) + unfollowed, 200_000)
        self.assertGreaterEqual(len(file.completions()), 1 << 17)

    def test_calls_after_finalize(self):
        ranks = self.launch(2, "life", "late")
        for file in ranks.values():
            self.assertEqual(file.identities[-1][2], 1)
            self.assertEqual(file.counters()["MPI_Initialized"], 2)
            self.assertEqual(file.counters()["MPI_Finalized"], 1)


class Mpi4(MpiTest):
    """What only libraries of MPI-4 have."""

    def test_large_counts_stand_under_their_plain_names(self):
        ranks = self.launch(2, "mpi4", "large")
        if "no large counts" in self.process.stdout:
            self.skipTest("this library has none")
        sent = self.assert_messages_match(ranks)
        tags = collections.Counter()
        for (_, _, _, tag, byte_count), count in sent.items():
            self.assertEqual(byte_count, tag * DOUBLE)
            tags[tag] += count
        self.assertEqual(tags, {1: 2, 2: 1, 3: 2})
        self.assert_counts(ranks)
        for rank, file in ranks.items():
            told = {r.name: (r.a64 // DOUBLE, r.words[0] // DOUBLE) for r in file.records
                    if r.kind == rf.COLLECTIVE}
            self.assertEqual(told["MPI_Bcast"], (10 if rank == 1 else 0, 5))
            self.assertEqual(told["MPI_Allgatherv"], (2 * (rank + 1), 3))
            self.assertEqual(told["MPI_Iallreduce"], (12, 12))

    def test_an_isendrecv_is_two_messages(self):
        """What it received is recorded where the library says it."""
        ranks = self.launch(2, "mpi4", "isendrecv")
        self.assert_counts(ranks)
        sent, received = self.messages(ranks)
        world = ranks[0].communicator("MPI_COMM_WORLD").identity
        expected = {(world, r, 1 - r, t, t * DOUBLE): 1 for r in (0, 1) for t in range(4, 8)}
        self.assertEqual(sent, expected)
        told_count = sum(int(n) for n in re.findall(r"(\d+) told", self.process.stdout))
        self.assertEqual(sum(received.values()), told_count)
        self.assertEqual(received - sent, collections.Counter())
        for file in ranks.values():
            self.assertEqual(len(file.calls("MPI_Isendrecv")), 3)
            self.assertEqual(len(file.calls("MPI_Isendrecv_replace")), 1)
            self.assertEqual(len(file.calls("MPI_Isendrecv: receive")), 4)

    def test_a_partitioned_message_is_one_and_says_which(self):
        ranks = self.launch(2, "mpi4", "partitioned")
        self.assert_counts(ranks)
        sent = self.assert_messages_match(ranks)
        world = ranks[0].communicator("MPI_COMM_WORLD").identity
        self.assertEqual(sent, {(world, 0, 1, 8, 8 * DOUBLE): 6})
        ends = [r for file in ranks.values() for r in file.records
                if r.kind in (rf.MESSAGE, rf.COMPLETION) and r.tag == 8]  # fmt: skip
        self.assertEqual(len(ends), 2 * 2 * 6)
        self.assertTrue(all(r.flags & rf.PARTITIONED for r in ends))
        order = [[r.channel for r in ranks[rank].calls("MPI_Start")] for rank in (0, 1)]
        self.assertEqual(order, [[2, 1] * 3, [1, 2] * 3])
        for file in ranks.values():
            started = {r.request: r.channel for r in file.calls("MPI_Start")}
            self.assertEqual({r.request: r.channel for r in file.completions()}, started)

    def test_persistent_collectives_move_their_bytes_at_each_start(self):
        ranks = self.launch(2, "mpi4", "persistent")
        self.assert_counts(ranks)
        for rank, file in ranks.items():
            started = collections.Counter()
            for r in file.records:
                if r.kind == rf.COLLECTIVE:
                    root, operation = rf.pair(r.words[1])
                    started[operation, root, r.a64 // DOUBLE, r.words[0] // DOUBLE] += 1
            self.assertEqual(set(started.values()), {3})
            own = rank + 1
            told = {key[1:] for key in started}
            self.assertEqual(told, {(-1, 0, 0), (1, 6 if rank == 1 else 0, 3), (-1, 6, 6),
                                    (0, own, 3 if rank == 0 else 0)})
            self.assertEqual(len(started), 5)

    def test_communicators(self):
        ranks = self.launch(2, "mpi4", "communicators")
        self.assert_counts(ranks)
        for name in ("idup", "from group"):
            own = [ranks[r].communicator(name) for r in (0, 1)]
            self.assertEqual(own[0].identity, own[1].identity, name)
            self.assertEqual([(c.size, c.rank) for c in own], [(2, 0), (2, 1)], name)


    def test_sessions_without_mpi_init(self):
        """The world is that of the first session that lives."""
        ranks = self.launch(2, "mpi4", "sessions")
        sent = self.assert_messages_match(ranks)
        self.assertEqual(sum(sent.values()), 2 * 2)
        for rank, file in ranks.items():
            self.assertEqual(file.providers, [(1, "mpi", "", "")])
            told = [identity[:3] for identity in file.identities]
            self.assertEqual(told, [(rank, 2, 0), (rank, 2, 1)])
            self.assertEqual(len(file.calls("MPI_Session_finalize")), 2)
        for name in ("first", "second"):
            own = [ranks[r].communicator(name) for r in (0, 1)]
            self.assertEqual(own[0].identity, own[1].identity)
            self.assertEqual([(c.size, c.rank) for c in own], [(2, 0), (2, 1)])
        identities = {c.identity for c in ranks[0].communicators.values()}
        self.assertEqual(len(identities), 4, "world, self, and one of each session")


    def test_many_sessions(self):
        """Ends of the first ones take the world from none of the others."""
        ranks = self.launch(2, "mpi4", "many_sessions", 40)
        self.assertEqual(sum(self.assert_messages_match(ranks).values()), 2)
        self.assert_late_session(ranks, [(1, "mpi", "", "")])

    def test_sessions_that_are_too_many_are_said(self):
        ranks = self.launch(2, "mpi4", "many_sessions", 4200)
        reason = "{}104 sessions are not followed: 4096 were live at once"
        told = (2, "mpi", reason, "finalize sessions earlier")
        self.assertEqual(sum(self.assert_messages_match(ranks).values()), 2)
        self.assert_late_session(ranks, [
            (1, "mpi", "", ""),
            (2, "mpi", "at least 1 sessions are not followed: 4096 were live at once", told[3]),
            (2, "mpi", reason.format(""), told[3])])

    def assert_late_session(self, ranks, providers):
        for rank, file in ranks.items():
            self.assertEqual(file.providers, providers)
            self.assertEqual([i[:3] for i in file.identities], [(rank, 2, 0), (rank, 2, 1)])
            late = file.communicator("late")
            self.assertEqual((late.size, late.rank, late.unseen_count), (2, rank, 0))
            last = max(r.end for r in file.calls("MPI_Session_finalize"))
            self.assertGreater(last, file.calls("MPI_Sendrecv")[0].end)

    def test_a_session_outlives_mpi_finalize(self):
        ranks = self.launch(2, "mpi4", "session_beyond")
        self.assertEqual(sum(self.assert_messages_match(ranks).values()), 2 * 2)
        for rank, file in ranks.items():
            self.assertEqual([i[:3] for i in file.identities], [(rank, 2, 0), (rank, 2, 1)])
            beyond = file.communicator("beyond")
            self.assertEqual((beyond.size, beyond.rank), (2, rank))


class Silence(MpiTest):
    """Preloaded where there is no MPI, the library does and says nothing."""

    def test_inert(self):
        preload = str(BUILD / "lib" / "libaon-mpi.so")
        plain = environment()
        quiet = environment(LD_PRELOAD=preload, AON_OUTPUT=self.folder)
        for command in (["/bin/sh", "-c", "echo a; ls /"], ["/usr/bin/python3", "-c", "print(1)"]):
            self.assertEqual(run(command, env=plain).stdout, run(command, env=quiet).stdout)
            self.assertEqual(run(command, env=quiet).stderr, "")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_library_loaded_privately(self):
        """Like mpi4py: libmpi comes by dlopen(RTLD_LOCAL)."""
        module = PROGRAMS / "libprivate.so"
        self.assert_one_exchange(f"import ctypes; ctypes.CDLL('{module}').run()")

    @unittest.skipUnless(MPI == "openmpi", "mpi4py is built with the default library")
    def test_mpi4py(self):
        self.assert_one_exchange(
            "from mpi4py import MPI; c = MPI.COMM_WORLD; "
            "r = c.Get_rank(); b = bytearray(5); "
            "c.Sendrecv(bytes(5), 1 - r, 3, b, 1 - r, 3); c.Barrier()"
        )

    def assert_one_exchange(self, text):
        preload = BUILD / "lib" / "libaon-mpi.so"
        command = [MPI_LAUNCHER, "-n", 2, "env", f"AON_OUTPUT={self.folder}"]
        command.append(f"LD_PRELOAD={preload}")
        self.assert_exit(run([*command, "/usr/bin/python3", "-c", text]))
        ranks = rf.read_all(self.folder)
        self.assertEqual(sorted(ranks), [0, 1])
        for file in ranks.values():
            (exchange,) = file.calls("MPI_Sendrecv")
            self.assertEqual((exchange.a64, exchange.words[1], exchange.tag), (5, 5, 3))
            self.assertEqual(file.identities[-1][2], 1)


if __name__ == "__main__":
    unittest.main()
