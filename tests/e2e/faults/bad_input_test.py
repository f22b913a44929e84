"""Mistakes of the user: a clear message and exit 2 before anything starts, or the program exactly
as without AON."""
import errno
import os
import shutil
import unittest

from fault_test import BUILD, IS_SANITIZED, FaultCase, copy_installation, environment, run


class BadInput(FaultCase):
    def refused(self, *command, code=2, says="", env=None):
        process = run(["aon-run", *command], env=env, cwd=self.folder)
        self.assert_exit(process, code)
        self.assertIn(says, process.stderr)
        self.assertEqual(process.stdout, "", "the program must not have run")
        left = sorted(p.name for p in self.folder.iterdir())
        self.assertEqual(left, ["counts"], "nothing is left")

    def test_unknown_option(self):
        self.refused("--bogus", "echo", "ran", says="--bogus")

    def test_value_that_is_none(self):
        self.refused("--memory", "much", "echo", "ran", says="much")
        self.refused("--wait", says="--wait needs a value: S")
        self.refused("echo", "ran", says="AON_WAIT", env=environment(AON_WAIT="soon"))
        self.refused("echo", "ran", says="no.toml", env=environment(AON_CONFIG="no.toml"))
        os.mkfifo(self.counts / "pipe")
        self.refused("echo", "ran", says="pipe is no regular file",
                     env=environment(AON_CONFIG=self.counts / "pipe"))

    def test_arguments_that_leave_no_room_for_our_variables(self):
        """The largest environment with which aon-run itself starts."""
        word = ["aon-run", "-o", self.folder / "job", "sh", "-c", "exit 7"]

        def start(size, **more):
            filled = {f"FILL_{i}": "x" * min(100_000, size - i) for i in range(0, size, 100_000)}
            return run(word, env={**environment(), **filled, **more})

        fits, too_large = 0, 8_000_000
        while too_large - fits > 32:
            size = (fits + too_large) // 2
            try:
                start(size, AON_DISABLE="1")
                fits = size
            except OSError as error:
                self.assertEqual(error.errno, errno.E2BIG)
                too_large = size
        done = start(fits)
        self.assert_exit(done, 7)
        self.assertIn("no room for our variables", done.stderr)

    def test_no_program(self):
        self.refused(says="no program")
        self.refused("-v", says="no program")

    def test_program_that_is_not_there(self):
        self.refused("./none", code=127, says="./none")
        self.refused("/etc/passwd", code=126, says="/etc/passwd")

    def test_output_that_cannot_be_written(self):
        for path in ("/proc/none/job", "/dev/null/job", "/etc/passwd"):
            self.refused("-o", path, "echo", "ran", says=path)

    def test_spool_folder_that_cannot_be_written(self):
        for path in ("/proc/none/spool", "/dev/null/spool", "/etc/passwd"):
            self.refused("--spool-dir", path, "echo", "ran", says=path)

    def test_folders_that_a_site_has_set_stop_no_program(self):
        for name in ("AON_OUTPUT", "AON_SPOOL_DIR", "AON_RECORD_FIXTURE"):
            env = environment(**{name: "/etc/passwd"})
            process = run(["aon-run", "echo", "ran"], env=env, cwd=self.folder)
            self.assert_exit(process)
            self.assertEqual(process.stdout, "ran\n", name)
            self.assertIn("/etc/passwd", process.stderr)
            self.assertIn("running without profiling", process.stderr)

    def test_under_mpirun_it_is_the_same(self):
        process = run(["mpirun", "-n", 2, "aon-run", "--bogus", "echo", "ran"])
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertNotIn("ran", process.stdout)


class Untouched(FaultCase):
    def test_disabled_is_a_plain_exec(self):
        env = environment(AON_DISABLE=1, AON_MEMORY="nonsense")
        process = run(["aon-run", "-o", self.output, "env"], env=env)
        self.assert_exit(process)
        for name in ("LD_PRELOAD", "AON_SOCKET", "AON_OUTPUT"):
            self.assertNotIn(name + "=", process.stdout)
        self.assertFalse(self.output.exists())
        self.assertEqual(process.stderr, "")

    def test_not_disabled_is_the_same_word_for_launcher_and_library(self):
        for value in ("0", ""):
            process = run(["aon-run", "-o", self.output, *self.worker("calls", 10)],
                          env=environment(AON_DISABLE=value))
            self.assert_exit(process)
            self.assert_every_call(self.finish(), 0)
            shutil.rmtree(self.output)

    def test_disabled_mpi_program_leaves_nothing(self):
        command = ["mpirun", "-n", 2, "aon-run", "-o", self.output, *self.worker("calls", 10)]
        process = run(command, env=environment(AON_DISABLE=1))
        self.assert_exit(process)
        self.assertFalse(self.output.exists())

    @unittest.skipIf(IS_SANITIZED, "the sanitizer wants to be the first library")
    def test_users_preload_stays(self):
        library = BUILD / "lib" / "libfault_preload.so"
        env = environment(LD_PRELOAD=library)
        process = run(["aon-run", "-o", self.output, "/bin/echo", "hello"], env=env)
        self.assert_exit(process)
        self.assertEqual(process.stdout.count("preloaded by the user"), 1, process.stdout)
        self.assertIn("hello", process.stdout)
        shown = run(["aon-run", "-o", self.output, "printenv", "LD_PRELOAD"], env=env)
        self.assertTrue(shown.stdout.splitlines()[-1].startswith(f"{library}:"), shown.stdout)

    def test_set_uid_program_is_left_alone(self):
        program = self.folder / "tool"
        shutil.copy(shutil.which("env"), program)
        os.chmod(program, 0o4755)
        process = run(["aon-run", "-o", self.output, program])
        self.assert_exit(process)
        self.assertNotIn("AON_SOCKET", process.stdout)
        self.assertFalse(self.output.exists())

    def test_what_cannot_be_printed_is_a_failure(self):
        for command in ("doctor", "--python-path", "avoid"):
            self.assertEqual(run(["sh", "-c", f"aon {command} > /dev/null"]).returncode, 0)
            process = run(["sh", "-c", f"aon {command} > /dev/full"])
            self.assertEqual(process.returncode, 1, process.stderr)
            self.assertIn("aon: standard output: No space left", process.stderr)

    def test_unwritable_default_directory_does_not_stop_the_job(self):
        process = run(["aon-run", "echo", "ran"], cwd="/proc/self")
        self.assert_exit(process)
        self.assertEqual(process.stdout, "ran\n")
        self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)

    @unittest.skipIf(IS_SANITIZED, "programs find the sanitizer's library beside the build only")
    def test_agent_that_cannot_be_started_leaves_each_rank_a_file(self):
        installation = copy_installation(self.folder / "aon")
        (installation / "bin/aon-agent").chmod(0o600)
        launcher = [installation / "bin/aon-run", "-o", self.output]
        process = run(["mpirun", "-n", 2, *launcher, *self.worker("calls", 1000)])
        self.assert_exit(process)
        self.assertIn("aon-agent: Permission denied; no agent, recording into", process.stderr)
        document = self.finish()
        for rank in range(2):
            self.assertTrue(self.rank_of(document, rank)["fallback"])
            self.assert_every_call(document, rank)


if __name__ == "__main__":
    unittest.main()
