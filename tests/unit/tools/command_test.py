"""`aon` as a user types it: help, wrong use, doctor."""
import json
import os
import pathlib
import re
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from aon_test import SOURCE, TestCase, build_for_others, environment, run  # noqa: E402


class Command(TestCase):
    def test_help_names_every_command(self):
        process = run(["aon", "--help"])
        self.assert_exit(process)
        for name in ("info", "finalize", "hang", "level", "avoid", "export", "doctor"):
            self.assertIn(name, process.stdout)
            self.assert_exit(run(["aon", name, "--help"]))
        self.assertNotIn("from-agent", run(["aon", "finalize", "--help"]).stdout)

    def test_wrong_use_is_2(self):
        for words in ([], ["bogus"], ["info"], ["info", "--bogus", "x"], ["info", "/none"],
                      ["finalize"], ["finalize", "--disk", "much", "/none"],
                      ["finalize", "--disk", "1", "/none"],
                      ["finalize", "--otf2-locations", "0", "/none"],
                      ["export", "/none"]):
            process = run(["aon", *words])
            self.assert_exit(process, 2)
            self.assertRegex(process.stderr, "(?m)^aon", words)

    def test_a_wrong_value_is_told_with_its_command(self):
        process = run(["aon", "finalize", "--jobs", "abc", self.folder])
        self.assert_exit(process, 2)
        self.assertRegex(process.stderr, "^aon finalize: .*--jobs = abc; see aon finalize --help$")

    def test_export_of_a_job_in_which_nothing_was_recorded(self):
        (self.folder / "aon.json").write_text('{"ranks": []}')
        process = run(["aon", "export", "--folded", "-", self.folder])
        self.assert_exit(process, 2)
        self.assertIn("nothing was recorded", process.stderr)
        self.assertNotIn("aon finalize", process.stderr)

    def test_folded_stacks_of_processes_without_a_rank_are_told_apart(self):
        columns = {"callpaths/parent": [-1, 0], "callpaths/function": [0, 1],
                   "samples/rank": [0, -1, -1], "samples/process": [0, 1, 2],
                   "samples/callpath": [1, 1, 0], "samples/count": [3, 4, 5],
                   "samples/period": [30, 40, 50]}  # fmt: skip
        with h5py.File(self.folder / "profile.h5", "w") as file:
            text = h5py.string_dtype()
            file.create_dataset("functions/name", data=["main", "a;b\nc"], dtype=text)
            for name, values in columns.items():
                file[name] = values
            file["samples"].attrs["unknown_count"] = 0
        for words, expected in (
            (["--by-rank"], "process 1;main;a,b,c 4\nprocess 2;main 5\nrank 0;main;a,b,c 3\n"),
            ([], "main 5\nmain;a,b,c 7\n"),
        ):
            process = run(["aon", "export", self.folder, "--folded", "-", *words])
            self.assert_exit(process)
            self.assertEqual(process.stdout, expected)

    def test_a_wrong_variable_is_named(self):
        process = run(["aon", "finalize", "/none"], env=environment(AON_SHARE_RECORDS="abc"))
        self.assert_exit(process, 2)
        self.assertIn("AON_SHARE_RECORDS: 'abc' is no number of records", process.stderr)

    def test_the_plugin_of_slurm_knows_every_option(self):
        table = run(["aon-run", "--help"]).stdout
        options = re.findall(r"^ +(?:-\w, )? *--([a-z0-9-]+) ", table, re.M)
        text = (SOURCE / "launcher/slurm/spank_aon.c").read_text()
        known = "".join(re.findall(r'"(.*)"', text.split("kOptions[] =")[1].split(";")[0])).split()
        self.assertEqual(sorted(known), sorted(set(options) - {"version", "help"}))

    def test_unknown_command_is_named_with_those_there_are(self):
        for words, says in ((["bogus"], "unknown command 'bogus'"), ([], "no command")):
            process = run(["aon", *words])
            self.assert_exit(process, 2)
            commands = "info, finalize, hang, level, avoid, export, diff, doctor"
            self.assertEqual(process.stderr, f"aon: {says}; commands are: {commands}\n")

    def test_version(self):
        for command in (["aon", "--version"], ["aon-run", "--version"]):
            process = run(command)
            self.assert_exit(process)
            self.assertRegex(process.stdout, r"^aon \d+\.\d+\.\d+\n$")

    def test_run_help_names_every_option(self):
        text = run(["aon-run", "--help"]).stdout
        for name in ("output", "providers", "without", "memory", "node-memory", "disk", "spool-dir",
                     "rendezvous", "flush-ms", "attach-ms",
                     "budget", "wait", "drop-spool", "no-assemble", "otf2-locations",
                     "dry-run", "version", "help"):
            self.assertIn(f"--{name}", text)
        self.assertIn("-o, --output", text)

    def test_what_cannot_be_written_is_a_failure(self):
        for words in (["aon", "--version"], ["aon-run", "--version"], ["aon-run", "--help"],
                      ["aon-run", "--dry-run", "true"]):
            process = run(["sh", "-c", 'exec "$@" > /dev/full', "sh", *words])
            self.assert_exit(process, 1)
            self.assertRegex(process.stderr, f"^{words[0]}: standard output: .*\n$")

    def test_dry_run_starts_nothing(self):
        process = run(["aon-run", "--dry-run", "-o", self.folder / "job", "echo", "ran"])
        self.assert_exit(process)
        self.assertIn("set LD_PRELOAD=", process.stdout)
        self.assertIn(f"set AON_OUTPUT={self.folder}/job", process.stdout)
        self.assertNotIn("\nran", process.stdout)
        self.assertFalse((self.folder / "job").exists())

    def test_a_variable_that_is_no_setting_is_told_once_in_a_launch(self):
        said = "aon-run: AON_BUGDET is no setting of AON; near it: AON_BUDGET\n"
        run_it = ["-o", self.folder / "job", "--no-assemble"]
        for words, rank, times in ((run_it, None, 1), (["--dry-run"], "0", 1),
                                   (["--dry-run"], "1", 0)):  # fmt: skip
            env = environment(AON_BUGDET="2", AON_ROOT="/opt/aon", OMPI_COMM_WORLD_RANK=rank)
            process = run(["aon-run", *words, "true"], env=env)
            self.assert_exit(process)
            self.assertEqual(process.stderr.count(said), times, process.stderr)

    def test_doctor_always_answers(self):
        process = run(["aon", "doctor"])
        self.assert_exit(process)
        self.assertIn("clock", process.stdout)
        checks = json.loads(run(["aon", "doctor", "--json"]).stdout)
        by_name = {check["name"]: check for check in checks}
        self.assertEqual(by_name["installation"]["state"], "yes")
        self.assertEqual(by_name["Open MPI"]["state"], "yes")
        self.assertEqual(by_name["provider node"]["state"], "yes")
        self.assertEqual(by_name["provider process"]["state"], "yes")
        self.assertNotIn("provider example", by_name)
        for name in ("energy", "membw", "network", "nvml", "perf"):
            check = by_name[f"provider {name}"]
            self.assertTrue(check["detail"])
            self.assertIn(check["state"], ("yes", "limited", "no"))

    def test_doctor_names_another_plugin_of_nccl(self):
        env = environment(NCCL_PROFILER_PLUGIN="/other/plugin.so")
        checks = json.loads(run(["aon", "doctor", "--json"], env=env).stdout)
        (check,) = [one for one in checks if one["name"] == "NCCL"]
        self.assertEqual(check["state"], "no")
        self.assertIn("NCCL_PROFILER_PLUGIN was set by the user and is left alone", check["detail"])
        self.assertIn("unset NCCL_PROFILER_PLUGIN", check["remedy"])

    def test_info_without_a_ledger_says_what_to_do(self):
        (self.folder / "spool").mkdir()
        process = run(["aon", "info", self.folder], env=environment())
        self.assert_exit(process, 1)
        self.assertIn("aon finalize", process.stderr)

    def test_info_of_what_is_no_job_directory_promises_nothing(self):
        process = run(["aon", "info", self.folder], env=environment())
        self.assert_exit(process, 2)
        self.assertIn("it is no job directory", process.stderr)
        self.assertNotIn("aon finalize", process.stderr)

    def test_a_launch_without_agent_and_events_is_told_as_such(self):
        (self.folder / ".launch").write_text("mpi-1\n")
        for command in ("info", "finalize", "hang", "level"):
            process = run(["aon", command, self.folder])
            self.assertIn("nothing was recorded: there was no agent, and no process made an event",
                          process.stderr, command)
            self.assertNotIn("no job directory", process.stderr, command)

    @unittest.skipUnless(os.geteuid() == 0, "a second user needs root")
    def test_who_may_not_read_is_told_whose_it_is(self):
        """The system's own command reads as nobody would."""
        (self.folder / "spool").mkdir()
        (self.folder / "aon.json").write_text("{}")
        self.folder.chmod(0o700)
        aon = build_for_others() / "bin" / "aon"
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", aon]
        for command in (["info"], ["finalize"], ["hang"], ["export", "--folded", "-"]):
            process = run([*words, *command, self.folder], env=environment())
            self.assertIn(process.returncode, (1, 2), command)
            self.assertIn("permission denied, it belongs to root", process.stderr, command)

    def test_info_shows_the_ledger(self):
        document = {"job": {"id": "1"}, "ranks": [{"rank": 0, "node": "n1", "pid": 5, "emitted": 7,
                    "lost": 0, "program": "/bin/a", "exit": {"code": 3, "signal": 0}}]}
        (self.folder / "aon.json").write_text(json.dumps(document))
        process = run(["aon", "info", self.folder])
        self.assert_exit(process)
        self.assertIn("1 rank on 1 node", process.stdout)
        self.assertIn("exit 3", process.stdout)
        self.assertEqual(json.loads(run(["aon", "info", "--json", self.folder]).stdout), document)


if __name__ == "__main__":
    unittest.main()
