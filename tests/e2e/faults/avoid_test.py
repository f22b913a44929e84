"""A program that died in AON's own code is left alone from then on: by aon-run, by the agent where
the program is known only when it comes, until the user takes it off the list."""
import os
import signal
import unittest

from fault_test import BUILD, FaultCase, environment, ledger, main, run, wait_until

PROGRAM = (BUILD / "bin" / "fault_in_aon").resolve()


class Avoided(FaultCase):
    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.home.mkdir()
        self.env = environment() | {"HOME": str(self.home)}
        self.env.pop("XDG_CONFIG_HOME", None)
        self.list = self.home / ".config" / "aon" / "avoid"

    def aon(self, *words):
        return run(["aon", *words], env=self.env)

    def job(self, output, *command):
        return run(["mpirun", "-n", 1, "aon-run", "-o", self.folder / output, "--", *command],
                   env=self.env)

    def die(self):
        process = self.job("died", PROGRAM, "die")
        self.assertEqual(process.returncode, 128 + signal.SIGSEGV, process.stderr)
        wait_until(self.list.exists, what="the list")
        return process

    def test_a_crash_of_ours_is_told_and_not_repeated(self):
        process = self.die()
        # The library's own stack is as without us: our note in front of its handler is a jump.
        plain = run(["mpirun", "-n", 1, PROGRAM, "die"], env=self.env)
        self.assertEqual(plain.returncode, process.returncode)
        self.assertRegex(plain.stderr, r"\[ *\d+\] \S*fault_in_aon\(")
        self.assertRegex(process.stderr, r"\[ *\d+\] \S*fault_in_aon\(")
        self.assertIn("libaon-mpi.so", process.stderr.split("[ 1]")[1].splitlines()[0])
        self.aon("finalize", "--quiet", self.folder / "died")
        state = ledger(self.folder / "died")["ranks"][0]["providers"]["recording"]
        self.assertEqual(state["state"], "degraded")
        self.assertRegex(state["reason"], r"died in AON's own code, libaon-mpi\.so\+0x[0-9a-f]+")
        self.assertIn("or of a bad pointer that it passed there", state["reason"])
        self.assertIn(f"aon avoid --remove {PROGRAM}", state["remedy"])
        self.assertIn(str(PROGRAM), self.aon("avoid").stdout)

        again = self.job("again", PROGRAM)
        self.assert_exit(again)
        self.assertIn("or of a bad pointer that it passed there; running without profiling; "
                      "to try again: aon avoid --remove", again.stderr)
        self.assertFalse((self.folder / "again").exists())

        self.assert_exit(self.aon("avoid", "--remove", PROGRAM))
        self.assertEqual(self.aon("avoid").stdout, "no program is left alone\n")
        self.assert_exit(self.job("once_more", PROGRAM))
        self.assertEqual(ledger(self.folder / "once_more")["ranks"][0]["rank"], 0)

    def test_the_agent_sends_away_what_aon_run_did_not_see(self):
        self.assert_exit(self.aon("avoid", "--add", PROGRAM))
        process = self.job("hidden", "bash", "-c", f"{PROGRAM}; true")
        self.assert_exit(process)
        self.assertIn("nothing was recorded: left alone", process.stderr)
        self.assertEqual(list((self.folder / "hidden/spool").rglob("fallback-*")), [])

    @unittest.skipUnless(os.geteuid() == 0, "a password database of its own needs root")
    def test_the_list_is_found_without_a_home_in_the_environment(self):
        self.assert_exit(self.aon("avoid", "--add", PROGRAM))
        accounts = self.folder / "accounts"
        accounts.write_text(f"root:x:0:0::{self.home}:/bin/sh\n", encoding="utf-8")
        script = f'mount --bind {accounts} /etc/passwd; unset HOME; exec "$@"'
        words = ["aon-run", "-o", self.folder / "job", "--", PROGRAM]
        again = run(["unshare", "--mount", "sh", "-c", script, "sh", *words], env=self.env)
        self.assertIn("running without profiling", again.stderr)

    def test_a_program_is_known_by_its_links_too(self):
        link = self.folder / "link"
        link.symlink_to(PROGRAM.parent)
        name = link / PROGRAM.name
        self.assert_exit(self.aon("avoid", "--add", name))
        for path in (name, PROGRAM):
            process = self.job("job", path)
            self.assertIn("running without profiling", process.stderr, path)
        self.assert_exit(self.aon("avoid", "--remove", name))
        self.assertEqual(self.aon("avoid").stdout, "no program is left alone\n")

    def test_what_cannot_be_meant_is_refused(self):
        for words in (["--add", "a.out"], ["--place", "x"], ["--remove", PROGRAM, "--place", "x"],
                      ["--add", "/bin/ls", "--remove", "/bin/ls"]):
            self.assert_exit(self.aon("avoid", *words), 2)
            self.assertFalse(self.list.exists())
        done = self.aon("avoid", "--add", "/no/such")
        self.assert_exit(done)
        self.assertIn("/no/such is added, but no such file is here", done.stderr)
        self.assertIn("\t/no/such\n", self.list.read_text())

    def test_one_that_was_added_is_not_said_to_have_died(self):
        self.assert_exit(self.aon("avoid", "--add", PROGRAM))
        self.assertRegex(self.aon("avoid").stdout,
                         r"^\S+\n    was added on \d{4}-\d\d-\d\d under aon \S+\n$")
        says = self.job("job", PROGRAM).stderr
        self.assertRegex(says, rf"aon-run: {PROGRAM} was added to what aon avoid lists on "
                               r"\d{4}-\S+; running without profiling")
        hidden = self.job("hidden", "bash", "-c", f"{PROGRAM}; true").stderr
        self.assertIn("left alone, as aon avoid lists it", hidden)
        for text in (says, hidden):
            self.assertNotIn("died", text)
        self.assert_exit(self.aon("avoid", "--add", "/no/such", "--place", "libaon.so+0x1"))
        self.assertIn("died in libaon.so+0x1 on ", self.aon("avoid").stdout)

    def test_another_program_is_recorded_beside_it(self):
        self.assert_exit(self.aon("avoid", "--add", "/opt/some/other"))
        self.assert_exit(self.job("job", PROGRAM))
        self.assertEqual(len(ledger(self.folder / "job")["ranks"]), 1)

    def test_a_crash_of_the_program_itself_is_not_ours(self):
        process = self.job("own", "bash", "-c", "kill -SEGV $$")
        self.assertEqual(process.returncode, 128 + signal.SIGSEGV)
        self.assertFalse(self.list.exists())

    def test_a_list_that_others_may_write_is_not_used(self):
        self.assert_exit(self.aon("avoid", "--add", PROGRAM))
        self.list.chmod(0o666)
        self.assert_exit(self.job("job", PROGRAM))
        self.assertEqual(len(ledger(self.folder / "job")["ranks"]), 1)


if __name__ == "__main__":
    main()
