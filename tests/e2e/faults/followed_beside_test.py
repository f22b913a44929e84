"""Programs that the agent follows above the program that is the rank and below one that waits for
it, and those that are to be left alone."""
import os
import pathlib
import shutil
import unittest

from fault_test import BUILD, environment, main, run
from followed import BURN, Followed, LONG_ENOUGH, OPTIONS, PROGRAM, STATIC


class Above(Followed):
    """What starts the program that is the rank."""

    def assert_ranks_below(self, document, program):
        ranks = [r for r in document["ranks"] if r["rank"] is not None]
        self.assertEqual([r["rank"] for r in ranks], [0, 1])
        for entry in ranks:
            self.assertTrue(entry["program"].endswith(program), entry["program"])
            self.assertGreater(entry["emitted"], 0)
        self.assertTrue(document["job"]["complete"], document["job"])
        return [r for r in document["ranks"] if r["rank"] is None]

    def test_shell_that_computes_first(self):
        words = " ".join(map(str, self.worker("pace", 1)))
        document, said = self.job("bash", "-c", f"{BURN} {words}; true", ranks=2)
        shells = self.assert_ranks_below(document, "fault_worker")
        self.assertEqual(len(shells), 2)
        for shell in shells:
            self.assertTrue(shell["program"].endswith("bash"), shell["program"])
            self.assert_followed(shell)
        self.assertTrue(document["assembly"]["communication_complete"])
        self.assertNotIn("not collected: mpi", said)
        self.assertIn("2 ranks, 2 other processes on 1 node", said)
        self.assert_opens()

    def test_child_that_records_without_mpi(self):
        script = f"{BURN} {BUILD}/bin/agent_emitter 2 1000 100 100; true"
        document, _ = self.job("bash", "-c", script, ranks=2)
        self.assertEqual(len(self.assert_ranks_below(document, "agent_emitter")), 2)

    def test_shell_that_is_killed_behind_them(self):
        """The rank has ended well: nothing of the job is missing."""
        words = " ".join(map(str, self.worker("pace", 1)))
        script = f"{BURN} {words}; kill -9 $$"
        run(["mpirun", "-n", 1, "aon-run", "-o", self.output, *OPTIONS, "--", "bash", "-c", script])
        document = self.finish()
        (shell,) = [r for r in document["ranks"] if r["rank"] is None]
        self.assertEqual(shell["exit"], {"code": None, "signal": 9})
        self.assertIn("followed_since", shell)
        self.assertEqual(self.rank_of(document, 0)["exit"], {"code": 0, "signal": 0})
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(document["job"]["incomplete_processes"], [])

    def test_shell_that_starts_them_alone(self):
        words = " ".join(map(str, self.worker("busy", 2)))
        document, _ = self.job("bash", "-c", f"{words}; {words}; true", ranks=2)
        programs = {os.path.basename(r["program"]) for r in document["ranks"]}
        self.assertEqual(programs, {"fault_worker"})
        self.assertEqual(len(document["ranks"]), 4)

    def test_launcher_that_is_busy_beside_them(self):
        """As one that polls: it has started others of the launch."""
        words = " ".join(map(str, self.worker("pace", 3)))
        script = (f"{words} & until [ -e {self.counts}/count.0 ]; do sleep 0.1; done; "
                  "while kill -0 $! 2> /dev/null; do :; done")
        document, _ = self.job("bash", "-c", script, ranks=1)
        (entry,) = document["ranks"]
        self.assertTrue(entry["program"].endswith("fault_worker"), entry["program"])


class Below(Followed):
    """What a program has started that says nothing and only waits."""

    def test_static_program_of_a_script(self):
        document, said = self.job("bash", "-c", f"{STATIC} spin 5; true", ranks=2)
        reason = f"{STATIC} is linked statically: no library can be loaded into it"
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for entry in document["ranks"]:
            self.assertEqual((entry["program"], entry["world"]), (str(STATIC), 2))
            self.assert_followed(entry, reason, "aon-run --without mpi before that program has all")
        self.assertEqual(document["nodes"][0]["providers"]["mpi"]["reason"], reason)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertIn("2 ranks on 1 node", said)
        self.assert_opens()

    def test_program_of_a_script_where_no_calls_are_wanted(self):
        document, _ = self.job("bash", "-c", f"{STATIC} spin 5; true",
                               options=(*OPTIONS, "--without", "mpi"))
        (entry,) = [r for r in document["ranks"] if r["program"] == str(STATIC)]
        self.assertGreater(entry["providers"]["perf"]["emitted"], 0)
        self.assertEqual(entry["providers"]["recording"]["remedy"],
                         "aon-run before that program has all")

    def test_two_at_a_time_and_one_that_is_switched_off(self):
        words = f"{STATIC} spin 5"
        script = f"{words} & {words} & AON_DISABLE=1 {words}; wait"
        document, _ = self.job("bash", "-c", script)
        self.assertEqual([r["program"] for r in document["ranks"]], [str(STATIC)] * 2)

    def test_late_init(self):
        document, _ = self.job("bash", "-c", f"{PROGRAM} later 5 50; true", ranks=1)
        (entry,) = document["ranks"]
        self.assertEqual((entry["rank"], entry["emitted"]), (0, 52))
        self.assertNotIn("followed_since", entry)
        self.assertGreater(entry["providers"]["perf"]["emitted"], 0)
        self.assertEqual(entry["providers"]["mpi"]["state"], "on")

    def test_program_that_a_script_leaves_running_holds_nothing_up(self):
        seen = f"{self.output}/spool/*/p[0-9]*.aon"
        script = f"{STATIC} spin 600 & until compgen -G '{seen}'; do sleep 0.1; done; echo $!"
        process = run(["aon-run", "-o", self.output, *OPTIONS, "--", "bash", "-c",
                       f"({script}) > {self.folder}/pid 2> /dev/null"])
        os.kill(int((self.folder / "pid").read_text().split()[-1]), 9)
        self.assert_exit(process)
        document = self.finish()
        (entry,) = document["ranks"]
        self.assertEqual(entry["exit"], {"code": None, "signal": 0})
        self.assertIn("followed_since", entry)
        self.assertTrue(document["job"]["complete"], document["job"])


class LeftAlone(Followed):
    def test_program_that_is_too_short(self):
        document, said = self.job(PROGRAM, "spin", 0.1)
        self.assert_nothing(document, said)
        self.assertIn("aon-run --without mpi", said)

    def test_no_provider_that_would_tell_of_it(self):
        self.assert_nothing(*self.job(PROGRAM, "spin", LONG_ENOUGH, options=("--providers", "mpi")))

    def test_avoided_program(self):
        env = environment() | {"HOME": str(self.folder)}
        env.pop("XDG_CONFIG_HOME", None)
        self.assert_exit(run(["aon", "avoid", "--add", PROGRAM], env=env))
        words = ["bash", "-c", f"exec {PROGRAM} spin {LONG_ENOUGH}"]
        document, said = self.job(*words, env=env)
        self.assert_nothing(document, said)
        told = document["nodes"][0]["providers"]["recording"]
        self.assertEqual(told["reason"], f"left alone, as aon avoid lists it: {PROGRAM}")
        self.assertIn(f"{told['reason']} ({told['remedy']})", said)

    def test_program_of_another_agent(self):
        """An aon-run with a directory of its own, in the same process."""
        inner = self.folder / "inner"
        words = ["bash", "-c", f"exec aon-run -o {inner} {PROGRAM} later {LONG_ENOUGH} 5"]
        document, _ = self.job(*words, ranks=2)
        self.assertEqual([r for r in document["ranks"] if r["pid"]], [])
        self.assertEqual([r["emitted"] for r in self.finish(output=inner)["ranks"]], [7, 7])

    def test_program_that_was_not_to_be_recorded(self):
        words = ["env", "AON_DISABLE=1", PROGRAM, "spin", LONG_ENOUGH]
        self.assert_nothing(*self.job(*words))

    @unittest.skipUnless(os.geteuid() == 0, "a program of another user needs root")
    def test_set_uid_program(self):
        has_no_new_privileges = "NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text()
        if has_no_new_privileges or os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("set-uid has no effect here")
        self.folder.chmod(0o755)
        program = self.folder / "program"
        shutil.copy(STATIC, program)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        # aon-run itself would not even begin.
        self.assert_nothing(*self.job("bash", "-c", f"exec {program} spin {LONG_ENOUGH}"))


if __name__ == "__main__":
    main()
