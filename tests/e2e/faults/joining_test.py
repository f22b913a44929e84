"""Directories of one launch are joined: again, at once, interrupted, and of a live job."""
import os
import random
import shutil
import time
import unittest

from fault_test import FaultCase, agent_pids, environment, ledger, main, run, wait_until


@unittest.skipUnless(os.geteuid() == 0, "needs root to be a host of another name")
class Joining(FaultCase):
    """Directories as a launcher without a common id leaves them: every node has one of its own."""

    def rank(self, name, host, rank, world=2, count=100):
        """Runs `rank` of `world` on `host` into a directory `name`, as hydra would start it."""
        output = self.folder / name
        command = ["unshare", "--uts", "bash", "-c", f'hostname {host} && exec "$@"', "bash",
                   "aon-run", "-o", output, *self.worker("early", count)]
        self.assert_exit(run(command, env=environment(PMI_RANK=rank, PMI_SIZE=world)))
        wait_until(lambda: not agent_pids(output), what="the agent's end")
        return output

    def content(self, folder):
        return {p.relative_to(folder): p.read_bytes()
                for p in sorted(folder.rglob("*")) if p.is_file()}

    def refused(self, first, second, *reasons):
        before = self.content(first), self.content(second)
        process = run(["aon", "finalize", first, second])
        self.assert_exit(process, 2)
        for text in (str(first), str(second), *reasons):
            self.assertIn(text, process.stderr)
        self.assertEqual((self.content(first), self.content(second)), before, "nothing is touched")

    def test_two_nodes_become_one_archive(self):
        first = self.rank("first", "node-a", 0, count=100)
        second = self.rank("second", "node-b", 1, count=200)
        before = self.content(second)
        for _ in range(3):
            self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
            document = ledger(first)
            self.assert_law(document)
            self.assertEqual([(r["rank"], r["node"]) for r in document["ranks"]],
                             [(0, "node-a"), (1, "node-b")])
            self.assertEqual(document["counted"], {"MPI_Initialized": 300})
            self.assertEqual(document["job"]["incomplete_ranks"], [])
        self.assertEqual(self.content(second), before)

    def test_a_node_whose_spool_was_refused_is_not_lost_when_it_is_joined(self):
        """Nothing of it, or the first part, is where its courier went."""
        for name, has_part in (("nothing", False), ("part", True)):
            with self.subTest(name):
                first = self.rank(f"{name}-first", "node-a", 0, count=100)
                second = self.rank(f"{name}-second", "node-b", 1, count=200)
                if has_part:
                    part = first / "spool" / "node-b"
                    part.mkdir(mode=0o700)
                    shutil.copy(second / "spool" / "node-b" / "definitions.aon", part)
                    (part / "joined-from").write_text("courier")
                lease = first / "agents" / "node-b.lease"
                lease.parent.mkdir(mode=0o700)
                lease.write_text("node-b 1 1 delivered no room for it\n")
                os.utime(lease, (1, 1))
                self.assert_exit(run(["aon", "finalize", "--quiet", first]))
                job = ledger(first)["job"]
                self.assertEqual(job["lost_nodes"], ["node-b"])
                self.assertEqual(job["refused_nodes"], {"node-b": "no room for it"})
                for directories in ([first, second], [first]):
                    self.assert_exit(run(["aon", "finalize", "--quiet", *directories]))
                    document = ledger(first)
                    self.assertEqual(document["counted"], {"MPI_Initialized": 300})
                    self.assertNotIn("lost_nodes", document["job"])
                    self.assertTrue(document["job"]["complete"], document["job"])

    def test_a_join_that_was_interrupted_is_done_anew(self):
        first = self.rank("first", "node-a", 0, count=100)
        second = self.rank("second", "node-b", 1, count=200)
        unfinished = first / "spool" / ".join-node-b"
        unfinished.mkdir()
        definitions = (second / "spool" / "node-b" / "definitions.aon").read_bytes()
        (unfinished / "definitions.aon").write_bytes(definitions[: len(definitions) // 2])
        self.assert_exit(run(["aon", "finalize", "--quiet", first]))
        self.assertEqual(ledger(first)["counted"], {"MPI_Initialized": 100})
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        self.assertEqual(ledger(first)["counted"], {"MPI_Initialized": 300})
        self.assertFalse(unfinished.exists())

    def test_two_at_once_leave_no_half_of_a_node(self):
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-b", 1)
        node = second / "spool" / "node-b"
        for number in range(3000):  # linking them takes as long as a second one takes to begin
            (node / f"more-{number}").touch()
        expected = sorted([*os.listdir(node), "joined-from"])
        for index in range(10):
            with self.subTest(index=index):
                both = self.folder / f"both-{index}"
                shutil.copytree(first, both)
                command = ["aon", "finalize", "--quiet", both]
                joining = [self.start(*command, second), self.start(*command, second)]
                time.sleep(random.uniform(0, 0.05))
                alone = self.start(*command)  # whoever comes removes what a killed one left
                codes = []
                for process in joining:
                    errors = process.communicate(timeout=60)[1]
                    codes.append(process.returncode)
                    self.assertIn(process.returncode, (0, 3), errors)
                alone.communicate(timeout=60)
                if 0 not in codes:  # the one for itself was first
                    self.assert_exit(run([*command, second]))
                names = os.listdir(both / "spool")
                self.assertEqual(sorted(names), ["node-a", "node-b"])
                self.assertEqual(sorted(os.listdir(both / "spool" / "node-b")), expected)

    def seen_ranks(self, output):
        return [r["rank"] for r in ledger(output)["ranks"] if r["pid"] is not None]

    def live_node(self, output, *options):
        """Starts node-b: ranks 1 and 2, this one without an agent, wait for the end, go on, and are
        followed by rank 3."""
        later, early = (" ".join(map(str, self.worker(m, 100))) for m in ("later", "early"))
        ranks = (f"PMI_RANK=1 {later} & AON_SOCKET=/none PMI_RANK=2 {later}; wait; "
                 f"PMI_RANK=3 {early}")
        return self.start("unshare", "--uts", "bash", "-c", 'hostname node-b && exec "$@"', "bash",
                          "aon-run", "-o", output, "--attach-ms", 5000, *options,
                          "bash", "-c", ranks, env=environment(PMI_SIZE=4))

    def test_what_came_after_a_snapshot_is_joined_as_well(self):
        for name, options in (("kept", ["--no-assemble"]), ("assembled", [])):
            with self.subTest(name):
                first = self.rank(f"{name}-first", "node-a", 0, world=4)
                second = self.folder / f"{name}-second"
                node = second / "spool" / "node-b"
                process = self.live_node(second, *options)
                wait_until(lambda: (node / "p0.0.aon").exists() and list(node.glob("*.ring")),
                           what="the records of ranks 1 and 2")
                self.assert_exit(run(["aon", "finalize", "--quiet", "--snapshot", first, second]))
                self.assertEqual(self.seen_ranks(first), [0, 1])  # not who has no agent
                (self.counts / "end").touch()
                self.assertEqual(process.wait(timeout=60), 0)
                wait_until(lambda: not agent_pids(second), what="the agent's end")
                for _ in range(2):
                    self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
                    document = ledger(first)
                    self.assert_law(document)
                    self.assertEqual(self.seen_ranks(first), [0, 1, 2, 3])
                    self.assertEqual(document["counted"], {"MPI_Initialized": 600})
                    self.assertEqual(document["losses"], [])
                    for warning in document["assembly"]["warnings"]:
                        self.assertTrue(warning.startswith("clocks: "), warning)
                    self.assertTrue(document["job"]["complete"], document["job"])
                for path in node.glob("*.aon"):
                    self.assertTrue(path.samefile(first / "spool" / "node-b" / path.name), path)
                (self.counts / "end").unlink()

    def test_files_that_are_others_now_are_taken_anew(self):
        """As a live agent leaves them: definitions written anew, another segment."""
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-b", 1)
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        node = second / "spool" / "node-b"
        definitions = node / "definitions.aon"
        shutil.copy(definitions, node / "new")
        (node / "new").rename(definitions)
        (node / "p0.0.aon").rename(node / "p0.1.aon")
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        joined = first / "spool" / "node-b"
        # Nothing was evicted: what the node has lost is all that is left of it.
        self.assertEqual({*os.listdir(joined)} - {*os.listdir(node)},
                         {"joined-from", "p0.0.aon"})
        for path in node.iterdir():
            self.assertTrue(path.samefile(joined / path.name), path.name)

    def test_another_launch_in_the_directory_is_refused(self):
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-b", 1)
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        shutil.rmtree(second)
        self.refused(first, self.rank("second", "node-b", 1), "host node-b")

    def test_counted_calls_cost_something(self):
        """Also those that leave no record: 4 ns each."""
        document = ledger(self.rank("first", "node-a", 0, count=4_000_000))
        calls = document["counted"]["MPI_Initialized"]
        self.assertEqual(calls, 4_000_000)
        self.assertGreaterEqual(document["overhead"]["app_cpu_s"], calls * 4e-9)

    def test_directories_may_move_between_two_joins(self):
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-b", 1)
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        moved = self.folder / "elsewhere"
        moved.mkdir()
        for path in (first, second):
            path.rename(moved / path.name)
        first, second = moved / "first", moved / "second"
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        self.assertEqual(len(ledger(first)["ranks"]), 2)

    def test_two_launches_of_one_host_are_refused(self):
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-a", 1)
        self.refused(first, second, "host node-a")

    def test_one_rank_twice_is_refused(self):
        first = self.rank("first", "node-a", 1)
        second = self.rank("second", "node-b", 1)
        self.refused(first, second, "rank 1")

    def test_worlds_of_different_size_are_refused(self):
        first = self.rank("first", "node-a", 0, world=2)
        second = self.rank("second", "node-b", 1, world=4)
        self.refused(first, second, "2 ranks", "4 ranks")

    def test_a_third_is_compared_with_what_was_joined(self):
        first = self.rank("first", "node-a", 0, world=3)
        second = self.rank("second", "node-b", 1, world=3)
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        self.refused(first, self.rank("third", "node-c", 1, world=3), "rank 1")
        self.refused(first, self.rank("fourth", "node-b", 2, world=3), "host node-b")
        fifth = self.rank("fifth", "node-e", 2, world=3)
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second, fifth]))
        self.assertEqual(len(ledger(first)["ranks"]), 3)

    def test_a_size_that_nobody_knows_is_no_evidence(self):
        first = self.rank("first", "node-a", 0, world=2)
        second = self.rank("second", "node-b", 1, world="")
        self.assert_exit(run(["aon", "finalize", "--quiet", first, second]))
        self.assertEqual(len(ledger(first)["ranks"]), 2)

    def test_a_dropped_spool_cannot_be_joined(self):
        first = self.rank("first", "node-a", 0)
        second = self.rank("second", "node-b", 1)
        self.assert_exit(run(["aon", "finalize", "--quiet", "--drop-spool", first]))
        for command in ([first, second], [second, first]):
            process = run(["aon", "finalize", *command])
            self.assert_exit(process, 2)
            self.assertIn(f"{first} has no spool", process.stderr)


if __name__ == "__main__":
    main()
