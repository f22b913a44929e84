#!/usr/bin/python3
"""The TaskProlog by itself, without a cluster: what it prints, what it costs, who stands at the
door, and that a program which records finds its agent through it.

    taskprolog_test.py [unittest arguments]
"""
import os
import pathlib
import pwd
import resource
import signal
import statistics
import subprocess
import time
import unittest

import cluster  # noqa: F401  finds aon_test
from aon_test import BUILD, IS_SANITIZED, TestCase, environment, ledger, run, wait_until

SCRIPT = BUILD / "share" / "aon" / "slurm" / "aon-taskprolog.sh"
RECORDS = BUILD / "bin" / "aon-canary-program"  # two regions; prints a line, exits with 42
MOST_OF_ENV = 4  # CPU time, by that of starting the simplest program
RUNS = 10


class TaskProlog(TestCase):
    """A made-up job whose only task is a process that sleeps."""

    def setUp(self):
        super().setUp()
        # pylint: disable=consider-using-with
        self.task = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self.end_task)
        self.variables = {
            "SLURM_JOB_ID": 7,
            "SLURM_STEP_ID": 0,
            "SLURM_TASK_PID": self.task.pid,
            "SLURM_SUBMIT_DIR": self.folder,
            "XDG_RUNTIME_DIR": self.folder,
            "HOME": self.folder,
        }

    def end_task(self):
        self.task.send_signal(signal.SIGKILL)
        self.task.wait()

    def prolog(self, *before, **changes):
        """What it has Slurm set, as a dictionary, None for what it unsets; `before` it as words of
        the command."""
        env = environment(**{**self.variables, **changes})
        done = run([*before, SCRIPT], env=env, timeout_s=20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        found = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            self.assertIn(word, ("export", "unset"), lines)
            name, equals, value = rest.partition("=")
            self.assertEqual(bool(equals), word == "export", line)
            self.assertNotIn(name, found, lines)
            found[name] = value if equals else None
        return found

    def sockets(self):
        return list((self.folder / "aon").glob("*"))

    def test_tasks_of_a_step_share_a_door_and_other_steps_have_their_own(self):
        first, second = self.prolog(), self.prolog()
        self.assertEqual(first, second)
        self.assertEqual(first["AON_SOCKET"], first["AON_DOOR"])
        self.assertEqual(first["AON_OUTPUT"], str(self.folder / "aon-7.0"))
        self.assertNotEqual(self.prolog(SLURM_STEP_ID=1)["AON_DOOR"], first["AON_DOOR"])
        self.assertNotEqual(self.prolog(SLURM_STEP_ID=None)["AON_DOOR"], first["AON_DOOR"])

    def test_the_doorman_ends_with_the_last_task_and_leaves_nothing(self):
        self.prolog()
        self.assertEqual(len(self.sockets()), 2)
        self.end_task()
        wait_until(lambda: not self.sockets(), 10, "the socket to go")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["aon"])

    def test_a_program_that_records_finds_its_agent(self):
        for expected in ("aon-7.0", "aon-7.0.1"):
            restart = {"SLURM_RESTART_COUNT": 1} if expected.endswith(".1") else {}
            env = environment(**{**self.variables, **self.prolog(), **restart})
            done = run([RECORDS], env=env)
            self.assertEqual((done.returncode, done.stdout), (42, "canary sings\n"), done.stderr)
            output = self.folder / expected
            wait_until(lambda at=output: (at / "traces.otf2").exists(), 60, f"{output}")
        (rank,) = ledger(output)["ranks"]
        self.assertEqual(rank["exit"]["code"], 42)
        self.assertGreaterEqual(rank["emitted"], 200)

    def record(self, step, output, **more):
        """A program of a step that wants its files in `output`."""
        variables = {**self.variables, "SLURM_STEP_ID": step, "AON_OUTPUT": output}
        exports = self.prolog(**variables)
        if more.pop("is_alone", False):  # nobody answers at the door
            door = pathlib.Path(exports["AON_DOOR"])
            door.rename(door.with_suffix(".away"))
            self.addCleanup(door.with_suffix(".away").unlink, missing_ok=True)
        done = run([RECORDS], env=environment(**{**variables, **exports, **more}))
        self.assertEqual((done.returncode, done.stderr), (42, ""))

    def ranks_in(self, output):
        """Whether each process of the archive was without an agent, and what finalize said."""
        done = run(["aon", "finalize", "--quiet", output])
        self.assert_exit(done)
        return [bool(rank.get("fallback")) for rank in ledger(output)["ranks"]], done.stderr

    def test_a_program_without_an_agent_is_in_the_archive_of_its_own_launch(self):
        first, second = self.folder / "wanted", self.folder / "wanted.1"
        for step, output in enumerate((first, second)):
            self.record(step, first)
            wait_until(lambda at=output: (at / "summary.txt").exists(), 60, f"{output}")
        self.record(1, first, is_alone=True)
        (ring,) = first.glob("spool/*/fallback-*.ring")
        ranks, said = self.ranks_in(first)
        self.assertEqual(ranks, [False])
        self.assertIn(f"{ring}: of another launch", said)
        self.assertIn(f"aon finalize {second}", said)
        self.assertTrue(ring.exists())
        self.assertIn("the file of a process that found no agent",
                      run(["aon", "info", second]).stdout)
        ranks, said = self.ranks_in(second)
        self.assertEqual((sorted(ranks), said), ([False, True], ""))
        self.assertFalse(ring.exists())
        self.assertEqual(self.ranks_in(first), ([False], ""))

    def test_a_launch_without_any_agent_is_told_where_its_file_is(self):
        first = self.folder / "wanted"
        self.record(0, first)
        wait_until(lambda: (first / "summary.txt").exists(), 60, "the archive")
        self.record(1, first, is_alone=True)
        (ring,) = first.glob("spool/*/fallback-*.ring")
        ranks, said = self.ranks_in(first)
        self.assertEqual(ranks, [False])
        self.assertIn(f"{ring}: of another launch", said)
        self.assertIn(str(ring), run(["aon", "info", first]).stdout)
        place = self.folder / "new" / "spool" / ring.parent.name
        place.mkdir(parents=True)
        ring.rename(place / ring.name)
        self.assertEqual(self.ranks_in(self.folder / "new"), ([True], ""))

    def test_a_launch_that_is_alone_has_its_files_without_any_agent(self):
        output = self.folder / "wanted"
        self.record(0, output, is_alone=True)
        self.assertEqual(self.ranks_in(output), ([True], ""))

    def test_options_in_the_environment_count_and_wrong_ones_hurt_nobody(self):
        wanted = self.folder / "wanted"
        exports = self.prolog(AON_OUTPUT=wanted, AON_MEMORY="nonsense")
        again = self.prolog(**exports)  # of a step that is started in this one
        self.assertEqual(again["AON_DOOR_OUTPUT"], str(wanted))
        env = environment(**{**self.variables, **exports, "AON_MEMORY": "nonsense"})
        self.assertEqual(run([RECORDS], env=env).returncode, 42)
        wait_until(lambda: (wanted / "traces.otf2").exists(), 60, "the archive")

    def check(self, *words, **changes):
        """What `aon-task --check` says of the made-up job."""
        env = environment(**{**self.variables, **changes})
        return run([BUILD / "bin" / "aon-task", *(words or ["--check"])], env=env)

    def test_what_is_left_out_of_wrong_settings_is_told(self):
        settings = {"AON_PROVIDERS": "mpii,mpi", "AON_MEMORY": "nonsense", "AON_FLUSH_MS": "100",
                    "AON_CONFIG": "settings.toml"}
        (self.folder / "settings.toml").write_text("bogus = 1\nbudget = 2\n", encoding="utf-8")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        exports = self.prolog(**settings)
        self.assertEqual(exports["AON_BUDGET"], "2")
        env = environment(**{**self.variables, **settings, **exports})
        done = run([RECORDS], env=env)
        self.assertEqual((done.returncode, done.stderr), (42, ""))
        output = self.folder / "aon-7.0"
        wait_until(lambda: (output / "summary.txt").exists(), 60, "the archive")
        found = ledger(output)
        (node,) = found["nodes"]
        (rank,) = found["ranks"]
        self.assertEqual(rank["providers"]["perf"]["reason"], "not in --providers")
        told = node["providers"]["options"]
        self.assertEqual(told["state"], "degraded")
        for name, value in settings.items():
            if name in ("AON_FLUSH_MS", "AON_CONFIG"):
                continue
            refused = run(["aon-run", "true"], env=environment(**{name: value}))
            self.assertEqual(refused.returncode, 2)
            message = refused.stderr.removeprefix("aon-run: ").rstrip("\n")
            self.assertIn(message, told["reason"])
            self.assertIn(name, told["remedy"])
            check = self.check(**{name: value})
            self.assertEqual(check.returncode, 1)
            self.assertIn(message, check.stderr)
        self.assertIn("settings.toml: unknown option 'bogus'", told["reason"])
        said = (output / "summary.txt").read_text()
        self.assertIn("not collected: options degraded on node", said)
        check = self.check(AON_EVENTS="cicles")
        self.assertEqual(check.returncode, 1)
        self.assertIn("'cicles' is no event of this machine", check.stderr)
        self.assertEqual(self.check(AON_FLUSH_MS="100").returncode, 0)
        check = self.check(AON_BUGDET="2")
        self.assertEqual(check.returncode, 1)
        self.assertIn("AON_BUGDET is no setting of AON; near it: AON_BUDGET", check.stderr)

    def test_arguments_of_aon_task(self):
        for words, code in ((["--help"], 0), (["-h"], 0), (["--bogus"], 2), (["--check", "x"], 2)):
            done = self.check(*words)
            self.assertEqual((done.returncode, self.sockets()), (code, []), words)
            self.assertIn("usage: aon-task" if code == 0 else "see aon-task --help",
                          done.stdout if code == 0 else done.stderr)

    def test_events_are_chosen_by_name(self):
        events = "page-faults,cycles,cicles"
        exports = self.prolog(AON_EVENTS=events)
        # Read at the borders of calls where the machine has a PMU: as numbers, without the rest.
        self.assertRegex(exports["AON_COUNTERS"], r"^0/0x0/0x0/0x0/\d+/cycles$")
        env = environment(**{**self.variables, **exports, "AON_EVENTS": events})
        self.assertEqual(run([RECORDS], env=env).returncode, 42)
        output = self.folder / "aon-7.0"
        wait_until(lambda: (output / "traces.otf2").exists(), 60, "the archive")
        (rank,) = ledger(output)["ranks"]
        self.assertIn("no event of this machine has such a name (not counted: cicles)",
                      rank["providers"]["perf"]["reason"])

    @unittest.skipIf(IS_SANITIZED, "sanitizers cost more")
    def test_it_costs_little(self):
        def spent_s(program):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            program()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

        programs = (self.prolog, lambda: run(["env"]))
        pairs = [[spent_s(program) for program in programs] for _ in range(RUNS)]
        own_s, env_s = (statistics.median(column) for column in zip(*pairs))
        self.assertLess(own_s, MOST_OF_ENV * env_s, pairs)

    def test_a_variable_that_says_no_counts(self):
        for value in ("1", "yes"):
            self.assertEqual(self.prolog(AON_DISABLE=value), {})
        for value in ("0", ""):
            self.assertIn("LD_PRELOAD", self.prolog(AON_DISABLE=value))

    def off(self, **changes):
        """Ways to switch AON off, as changes of the environment."""
        site, home = self.folder / "site", self.folder / "home"
        site.mkdir()
        (site / "off-partitions").write_text("gpu\nslow\n", encoding="utf-8")
        (home / ".aon").mkdir(parents=True)
        (home / ".aon" / "off").touch()
        node = self.folder / "node"
        node.mkdir()
        (node / "off").write_text("canary: a reason", encoding="utf-8")
        partition = {"AON_SITE_DIR": site, "SLURM_JOB_PARTITION": "slow"}
        ways = (partition, {"HOME": home}, {"AON_NODE_DIR": node}, {"AON_DISABLE": 1})
        return [{**changes, **way} for way in ways]

    def test_what_a_job_has_inherited_from_another_one_is_taken_back_where_aon_is_off(self):
        mine = "/usr/lib/x86_64-linux-gnu/libm.so.6"
        first = self.prolog(LD_PRELOAD=mine, AON_WITHOUT="nvtx")
        self.assertTrue(first["LD_PRELOAD"].startswith(f"{mine}:"))
        for changes in self.off(SLURM_JOB_ID=8, SLURM_STEP_ID=None):
            second = self.prolog(**{**first, **changes})
            self.assertEqual(second.pop("LD_PRELOAD"), mine)
            self.assertEqual(set(second.values()), {None}, changes)
            given = {"AON_SOCKET", "AON_DOOR", "AON_DOOR_GAVE", "AON_OUTPUT", "AON_OUTPUT_GAVE",
                     "AON_LEFT_OUT"}
            self.assertLessEqual(given, set(second), changes)
            again = {**first, "LD_PRELOAD": mine, **second}
            self.assertNotIn(str(BUILD / "lib"), " ".join(map(str, again.values())))
            alone = {**first, **changes, "LD_PRELOAD": first["LD_PRELOAD"][len(mine) + 1:]}
            self.assertEqual(self.prolog(**alone)["LD_PRELOAD"], None)
            # Nothing is left to take back.
            self.assertEqual(self.prolog(**{**again, **changes}), {})

    def test_the_users_folder_is_given_back_where_aon_is_off(self):
        wanted = self.folder / "wanted"
        first = self.prolog(AON_OUTPUT=wanted)
        self.assertEqual(first["AON_OUTPUT"], str(wanted))
        changes = self.off()[0]
        second = self.prolog(**{**first, **changes})
        self.assertEqual((second["AON_OUTPUT"], second["AON_DOOR_OUTPUT"]), (str(wanted), None))
        mine = self.prolog(**{**first, **changes, "AON_OUTPUT": "mine"})
        self.assertNotIn("AON_OUTPUT", mine)

    def test_a_program_of_a_job_where_aon_is_off_leaves_the_other_jobs_directory_alone(self):
        first = self.prolog()
        changes = self.off(SLURM_JOB_ID=8)[0]
        env = {**self.variables, **first, **changes}
        done = run([RECORDS], env=environment(**{**env, **self.prolog(**env)}))
        self.assertEqual((done.returncode, done.stderr), (42, ""))
        self.assertEqual(list(self.folder.glob("aon-*")), [])

    def test_what_a_job_has_inherited_from_another_one_makes_way_for_its_own(self):
        events = "page-faults,cycles"
        first = self.prolog(AON_EVENTS=events, AON_WITHOUT="mpi")
        self.assertIn("cycles", first["AON_COUNTERS"])
        self.assertEqual(first["AON_LEFT_OUT"], "mpi")
        second = {**first, **self.prolog(**{**first, "SLURM_JOB_ID": 8})}
        plain = self.prolog(SLURM_JOB_ID=8)
        self.assertEqual({k: v for k, v in second.items() if v is not None}, plain)

    def test_what_a_step_leaves_out_is_taken_back(self):
        plugins = {"cupti": "CUDA_INJECTION64_PATH", "nvtx": "NVTX_INJECTION64_PATH",
                   "nccl": "NCCL_PROFILER_PLUGIN"}
        outer = self.prolog()
        for provider, name in plugins.items():
            self.assertIn(name, outer)
            inner = self.prolog(**{**outer, "AON_WITHOUT": provider})
            self.assertEqual({k for k in plugins.values() if inner.get(k, "kept") is None}, {name})
            env = environment(**{**self.variables, **outer})
            done = run(["aon-run", "--without", provider, "-o", self.folder / provider, "printenv"],
                       env=env)
            self.assert_exit(done)
            left = {line.split("=", 1)[0] for line in done.stdout.splitlines()}
            self.assertEqual(set(plugins.values()) - left, {name})

    def test_users_of_the_sites_list_are_known_by_slurm_and_by_number(self):
        site = self.folder / "site"
        site.mkdir()
        name, number = pwd.getpwuid(os.geteuid()).pw_name, str(os.geteuid())
        changes = {"AON_SITE_DIR": site, "USER": "somebody-else", "HOME": self.folder}
        for line, of_slurm, is_off in (
            ("somebody-else", name, False),
            (name, name, True),
            (number, "by-another-name", True),
            (name, None, True),
        ):
            (site / "off-users").write_text(f"first\n{line}\n", encoding="utf-8")
            found = self.prolog(**changes, SLURM_JOB_USER=of_slurm)
            self.assertEqual(found == {}, is_off, line)

    @unittest.skipUnless(os.geteuid() == 0, "a password database of its own needs root")
    def test_without_a_home_in_the_environment_the_users_word_counts_as_well(self):
        (self.folder / ".aon").mkdir()
        home = f"root:x:0:0::{self.folder}:/bin/sh"
        self.assertIn("LD_PRELOAD", self.prolog(*self.with_accounts(home), HOME=None))
        (self.folder / ".aon" / "off").touch()
        self.assertEqual(self.prolog(*self.with_accounts(home), HOME=None), {})
        # Not a local user: asked for.
        asked = self.with_accounts("", f"echo '{home}'")
        self.assertEqual(self.prolog(*asked, HOME=None), {})
        (self.folder / ".aon" / "off").unlink()
        self.assertIn("LD_PRELOAD", self.prolog(*asked, HOME=None))
        # He has no home: nothing to look into.
        self.assertIn("LD_PRELOAD", self.prolog(*self.with_accounts("", "exit 2"), HOME=None))

    @unittest.skipUnless(os.geteuid() == 0, "a password database of its own needs root")
    def test_where_nobody_knows_the_users_word_the_task_runs_without(self):
        hanging = self.with_accounts("", "exec sleep 100")
        begin = time.monotonic()
        self.assertEqual(self.prolog(*hanging, HOME=None), {})
        self.assertLess(time.monotonic() - begin, 5)
        done = run([*hanging, BUILD / "bin" / "aon-task", "--check"],
                   env=environment(**{**self.variables, "HOME": None}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("whether the user wants it is not known", done.stderr)
        # With a home nobody is asked.
        self.assertIn("LD_PRELOAD", self.prolog(*hanging))

    def with_accounts(self, lines, getent="exit 2"):
        """Words before a command that let it see this /etc/passwd and this getent."""
        accounts, program = self.folder / "accounts", self.folder / "getent"
        accounts.write_text(f"{lines}\n", encoding="utf-8")
        program.write_text(f"#!/bin/sh\n{getent}\n", encoding="utf-8")
        program.chmod(0o755)
        mounts = f"mount --bind {accounts} /etc/passwd; mount --bind {program} /usr/bin/getent"
        return ["unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "sh"]

    def test_outside_of_a_job_it_says_nothing(self):
        self.assertEqual(self.prolog(SLURM_JOB_ID=None), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
