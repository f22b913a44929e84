"""Job directories: used before, two launches, finalize twice, and beside a live agent."""
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

from fault_test import (
    BUILD,
    IS_SANITIZED,
    WORKER,
    FaultCase,
    agent_pids,
    environment,
    ledger,
    main,
    run,
    wait_until,
)

import readers


class OneRankCase(FaultCase):
    def profile(self, count=100, options=(), **more):
        process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, *options,
                       *self.worker("calls", count)], **more)
        self.assert_exit(process)
        return process


class Directories(OneRankCase):
    def test_directory_of_an_earlier_launch_is_left_alone(self):
        self.profile(100)
        before = (self.output / "aon.json").read_bytes()
        self.profile(200)
        self.profile(300)
        self.assertEqual((self.output / "aon.json").read_bytes(), before)
        for name, count in (("job", 100), ("job.1", 200), ("job.2", 300)):
            document = self.finish(output=self.folder / name)
            self.assertEqual(self.profile_count(0, output=self.folder / name), count)
            self.assertEqual(len(document["ranks"]), 1)

    def test_folder_with_other_files_is_left_alone(self):
        self.output.mkdir()
        (self.output / "results.dat").write_text("mine")
        self.profile()
        self.assertEqual([p.name for p in self.output.iterdir()], ["results.dat"])
        self.finish(output=self.folder / "job.1")

    def test_folders_of_options_in_the_job_directory(self):
        """They are in the one that the launch has got, and nothing is put into another's."""
        inside = ("--spool-dir", self.output / "spool", "--record-fixture", self.output / "fix")
        for name, count in (("job", 100), ("job.1", 200)):
            self.profile(count, inside)
            job = self.folder / name
            self.finish(output=job)
            self.assertEqual(self.profile_count(0, output=job), count)
            self.assertTrue((job / "fix").is_dir())
            self.assertEqual(len(list((job / "spool").glob("aon-*"))), 1)

    def test_a_file_system_without_hard_links(self):
        """And without a rename that replaces nothing: a new directory, then one beside it."""
        for has_renames, name in (("0", "job"), ("1", "job.1")):
            words = [BUILD / "bin" / "no_links", has_renames, "aon-run", "-o", self.output]
            process = run([*words, *self.worker("calls", 100)])
            self.assert_exit(process)
            self.finish(output=self.folder / name)
            self.assertEqual(self.profile_count(0, output=self.folder / name), 100)

    def test_the_current_folder_as_job_directory(self):
        self.output.mkdir()
        (self.output / "results.dat").write_text("mine")
        self.assert_exit(run(["aon-run", "-o", ".", *self.worker("calls", 3)], cwd=self.output))
        self.assertEqual(os.listdir(self.output), ["results.dat"])
        self.finish(output=self.folder / "job.1")

    def test_two_launches_of_one_script(self):
        worker = " ".join(str(w) for w in self.worker("calls", 50))
        line = f"mpirun -n 2 aon-run {worker}"
        self.assert_exit(run(["bash", "-c", f"{line}; {line}"], cwd=self.folder))
        made = sorted(self.folder.glob("aon-*"))
        self.assertEqual(len(made), 2)
        for output in made:
            self.assertEqual(len(self.finish(output=output)["ranks"]), 2)

    def check_moved_during_the_run(self, then=lambda: None):
        process = self.start_job(1, *self.worker("pace", 2), options=["--flush-ms", 50])
        self.wait_for_calls(0, 100)
        moved = self.folder / "elsewhere" / "moved"
        moved.parent.mkdir()
        self.output.rename(moved)
        then()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(str(moved), errors)
        document = ledger(moved)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(self.profile_count(0, output=moved), self.own_count(0))
        self.assertFalse(self.output.exists())
        self.assertEqual(list(moved.glob("agents/*")), [])

    def test_moved_during_the_run(self):
        self.check_moved_during_the_run()

    def test_moved_during_the_run_and_the_worker_killed(self):
        self.check_moved_during_the_run(self.kill_worker)

    def test_modes_are_private(self):
        self.profile()
        self.finish()
        for folder, _, files in os.walk(self.output):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700, folder)
            for name in files:
                path = os.path.join(folder, name)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)


class Finalize(OneRankCase):
    def test_twice_is_once(self):
        self.assert_exit(run(["mpirun", "-n", 2, "aon-run", "-o", self.output,
                              *self.worker("calls", 100)]))
        first = self.finish()
        second = self.finish()
        for key in ("ranks", "losses"):
            self.assertEqual(first[key], second[key])
        self.assertEqual(self.profile_count(0), 100)

    def test_live_job_is_refused_and_shown_on_demand(self):
        process = self.start_job(2, *self.worker("pace", 300), options=["--flush-ms", 50])
        self.wait_for_calls(0)
        refused = run(["aon", "finalize", self.output])
        self.assert_exit(refused, 3)
        self.assertIn(socket.gethostname(), refused.stderr)
        self.assertIn(str(agent_pids(self.output)[0]), refused.stderr)
        self.assertFalse((self.output / "aon.json").exists())
        time.sleep(1.5)  # a block is sealed after a second at the latest
        shown = run(["aon", "finalize", "--snapshot", self.output])
        self.assert_exit(shown)
        self.assert_law(ledger(self.output))
        self.assertGreater(self.profile_count(0), 0)
        # Now and then the agent has a child for a moment.
        wait_until(lambda: len(agent_pids(self.output)) == 2, what="the job going on")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank, killed=True)

    def test_without_assembly_it_is_the_users_turn(self):
        process = run(["mpirun", "-n", 1, "aon-run", "--no-assemble", "-o", self.output,
                       *self.worker("calls", 100)])
        self.assert_exit(process)
        self.assertFalse((self.output / "aon.json").exists())
        self.assertIn("aon finalize", process.stderr)
        self.finish()
        self.assertEqual(self.profile_count(0), 100)

    def test_spool_is_dropped_on_demand(self):
        self.assert_exit(run(["mpirun", "-n", 1, "aon-run", "--drop-spool", "-o", self.output,
                              *self.worker("calls", 100)]))
        self.finish()
        self.assertFalse((self.output / "spool").exists())
        self.assertTrue((self.output / "traces.otf2").exists())

    def test_snapshot_of_a_finished_job_is_the_job(self):
        self.profile(100)
        self.finish()
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        self.assert_exit(run(["aon", "finalize", "--snapshot", "--quiet", self.output]))
        job = ledger(self.output)["job"]
        self.assertTrue(job["complete"], job)
        self.assertNotIn("snapshot", job)

    def test_what_is_no_job_directory(self):
        self.assertNotEqual(run(["aon", "finalize", self.folder / "none"]).returncode, 0)
        for command in ("finalize", "info", "hang"):
            process = run(["aon", command, self.counts])
            self.assert_exit(process, 2)
            self.assertIn("no job directory", process.stderr)


class LaterAgent(FaultCase):
    """A second program of the launch comes while the agent of the first still has the lease of the
    node, which is this process: both record into the same spool."""

    def setUp(self):
        super().setUp()
        go = self.folder / "go"
        script = ('aon-run -o "$0" "$1" early "$2" 3; while [ ! -e "$3" ]; do sleep 0.05; done; '
                  'exec aon-run -o "$0" "$1" later "$2" 5')
        self.process = self.start("mpirun", "-n", 1, "bash", "-c", script, self.output, WORKER,
                                  self.counts, go)
        wait_until((self.output / "aon.json").exists, what="the archive of the first")
        wait_until(lambda: not agent_pids(self.output), what="the end of its agent")
        (self.spool,) = (self.output / "spool").iterdir()
        (self.output / "agents").mkdir(mode=0o700)
        self.mark(self.output, "lease").write_text(self.own_lease())
        go.touch()
        wait_until(self.mark(self.output, "next").exists, what="the mark of who waits")

    def mark(self, job, kind):
        return job / "agents" / f"{self.spool.name}.{kind}"

    def own_lease(self):
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
        host = socket.gethostname() + ("" if space == "4026531836" else f"@{space}")
        with open("/proc/self/stat", encoding="utf-8") as stat_file:
            start = stat_file.read().rpartition(")")[2].split()[19]
        return f"{host} {os.getpid()} {start} test"

    def assert_awaited(self, job):
        """Its keeper says so, again and again."""
        mark = self.mark(job, "next")
        self.assertEqual(int(mark.read_text().split()[1]), agent_pids(self.output)[0])
        told = mark.stat().st_mtime_ns
        wait_until(lambda: mark.stat().st_mtime_ns > told, what="a sign of life of who waits")

    def assert_whole(self, job):
        """When the first has gone: the other one has the lease, and all is in its archive."""
        self.mark(job, "lease").unlink()
        wait_until(lambda: not self.mark(job, "next").exists(), what="the end of the waiting")
        owner = int(self.mark(job, "lease").read_text().split()[1])
        self.assertEqual(owner, agent_pids(self.output)[0])
        (self.counts / "end").touch()
        _, errors = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 0, errors)
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        document = ledger(job)
        self.assert_law(document)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(document["counted"], {"MPI_Initialized": 3 + 2 * 5})
        self.assertFalse((job / "agents").exists(), "nothing is left of them")

    def test_the_spool_is_not_dropped_while_it_waits(self):
        self.assert_awaited(self.output)
        self.mark(self.output, "done").write_text(self.own_lease() + " shares")
        self.assert_exit(run(["aon", "finalize", "--quiet", "--from-agent", "--drop-spool",
                              f"--node={self.spool.name}", self.output]))
        self.assertTrue(self.spool.exists())
        self.assert_whole(self.output)

    def test_it_waits_where_the_directory_is_now(self):
        moved = self.folder / "moved"
        self.output.rename(moved)
        self.assert_awaited(moved)
        self.assert_whole(moved)

    def test_it_waits_on_where_the_marks_are_not_there_for_a_moment(self):
        """As where the directory is moved just when it looks."""
        agents, away = self.output / "agents", self.output / "away"
        agents.rename(away)
        time.sleep(2.5)  # it looks once a second
        away.rename(agents)
        self.assert_awaited(self.output)
        self.assert_whole(self.output)


class KilledFinalize(FaultCase):
    """`aon finalize` dies by SIGKILL and is called again, as often as it takes."""

    CALLS = 2000

    def setUp(self):
        super().setUp()
        self.pristine = self.folder / "pristine"
        self.assert_exit(run(["mpirun", "-n", 2, "aon-run", "--no-assemble", "-o", self.pristine,
                              *self.worker("calls", self.CALLS)]))
        wait_until(lambda: not agent_pids(self.pristine), what="the agent's end")
        self.renew()
        self.assert_exit(run(["aon", "finalize", "--quiet", self.output]))
        self.expected = self.names()
        self.assertIn("traces.otf2", self.expected)

    def renew(self):
        shutil.rmtree(self.output, ignore_errors=True)
        shutil.copytree(self.pristine, self.output, symlinks=True)

    def names(self):
        return sorted(str(p.relative_to(self.output)) for p in self.output.rglob("*"))

    def assert_whole_after_another_try(self, when, *options):
        self.assert_exit(run(["aon", "finalize", "--quiet", *options, self.output]))
        self.assertEqual(self.names(), self.expected, when)
        document = ledger(self.output)
        self.assert_law(document)
        for rank in (0, 1):
            self.assertEqual(self.rank_of(document, rank)["emitted"], self.CALLS + 2, when)
            self.assertEqual(self.profile_count(rank), self.CALLS, when)
        readers.otf2_print(self, self.output)

    def kill_at_steps(self, stride, *options, twice=1000):
        """Every `stride`-th step; those that `twice` divides two times, where the second time the
        directory has an archive already."""
        for step in range(1, 1000, stride):
            self.renew()
            variables = environment(LD_PRELOAD=BUILD / "lib" / "libfault_die_at.so",
                                    AON_TEST_DIE_AT=step)
            for time_number in range(2 if step % twice == 0 else 1):
                process = run(["aon", "finalize", "--quiet", *options, self.output], env=variables)
                if process.returncode == 0:
                    print(f"killed at {step - 1} steps", file=sys.stderr)
                    self.assertGreater(step, 20, "a finalize has more steps than that")
                    return
                self.assertEqual(process.returncode, -signal.SIGKILL, process.stderr)
                self.assert_whole_after_another_try(f"step {step}, time {time_number}", *options)
        self.fail("it never came to its end")

    @unittest.skipIf(IS_SANITIZED, "the sanitizer's runtime must come first in LD_PRELOAD")
    def test_at_changes_of_the_directory(self):
        self.kill_at_steps(2, twice=5)

    @unittest.skipIf(IS_SANITIZED, "the sanitizer's runtime must come first in LD_PRELOAD")
    def test_at_changes_of_the_directory_while_the_spool_is_dropped(self):
        self.expected = [name for name in self.expected if not name.startswith("spool")]
        self.kill_at_steps(3, "--drop-spool")

    @unittest.skipIf(IS_SANITIZED, "the sanitizer's runtime must come first in LD_PRELOAD")
    def test_who_waits_is_told_of_an_archive_with_its_summary(self):
        """An agent takes the archive for complete when its node's mark has gone."""
        mark = self.output / "agents" / "n9.done"
        told = 0
        for step in range(1, 1000, 3):
            self.renew()
            mark.parent.mkdir(exist_ok=True)
            mark.write_text("n9 1 1\n", encoding="utf-8")
            variables = environment(LD_PRELOAD=BUILD / "lib" / "libfault_die_at.so",
                                    AON_TEST_DIE_AT=step)
            process = run(["aon", "finalize", "--quiet", self.output], env=variables)
            if not mark.exists():
                told += 1
                self.assertTrue((self.output / "summary.txt").exists(), f"step {step}")
            if process.returncode == 0:
                break
            self.assertEqual(process.returncode, -signal.SIGKILL, process.stderr)
        self.assertGreater(step, 20, "a finalize has more steps than that")
        self.assertGreater(told, 0)

    def test_at_random_moments(self):
        self.renew()
        begin = time.monotonic()
        self.assert_exit(run(["aon", "finalize", "--quiet", self.output]))
        length_s = time.monotonic() - begin
        for index in range(12):
            if index % 2 == 0:
                self.renew()
            for _ in range(3):
                process = subprocess.Popen(["aon", "finalize", "--quiet", str(self.output)],
                                           env=environment(), stdin=subprocess.DEVNULL)
                time.sleep(random.uniform(0, length_s))
                process.kill()
                process.wait(timeout=20)
            self.assert_whole_after_another_try(f"round {index}")


class SpoolElsewhere(OneRankCase):
    def setUp(self):
        super().setUp()
        self.place = self.folder / "place"
        self.options = ["--spool-dir", self.place]

    def link(self):
        (link,) = (self.output / "spool").iterdir()
        self.assertTrue(link.is_symlink())
        return link, link.readlink()

    def test_it_is_where_it_should_be(self):
        self.profile(options=self.options)
        self.finish()
        _, target = self.link()
        self.assertTrue((target / "definitions.aon").exists())
        self.assertEqual(target.parent.parent, self.place)
        used = ledger(self.output)["budget"]["disk_used_bytes"]
        spooled = sum(p.stat().st_size for p in target.rglob("*"))
        self.assertGreater(used, spooled)

    def test_dropping_takes_what_the_link_points_to(self):
        self.profile(options=[*self.options, "--drop-spool"])
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        self.assertTrue((self.output / "traces.otf2").exists())
        self.assertFalse((self.output / "spool").exists())
        self.assertEqual(list(self.place.iterdir()), [])

    def test_dropping_later_leaves_other_launches_alone(self):
        self.profile(options=self.options)
        (self.place / "other").mkdir()
        self.assert_exit(run(["aon", "finalize", "--quiet", "--drop-spool", self.output]))
        self.assertEqual([p.name for p in self.place.iterdir()], ["other"])

    @unittest.skipUnless(os.geteuid() == 0, "making files of another user needs root")
    def test_a_folder_that_another_user_made_there_gets_nothing(self):
        planted = self.place / "aon-4711.0"
        planted.mkdir(parents=True)
        os.chown(planted, 65534, 65534)
        planted.chmod(0o777)
        job = environment(SLURM_JOB_ID=4711, SLURM_STEP_ID=0, SLURM_PROCID=0, SLURM_NTASKS=1)
        program = BUILD / "bin" / "aon-canary-program"
        done = run(["aon-run", "-o", self.output, *self.options, program], env=job)
        self.assert_exit(done, 42)
        self.assertFalse(list(planted.glob("*/*")))
        log = next(self.output.glob("agent.*.log")).read_text()
        self.assertIn("aon-4711.0 is another user's", log)
        (rank,) = self.finish()["ranks"]  # recorded into a file, without the agent
        self.assertGreater(rank["emitted"], 0)

    def test_link_to_nothing_is_named(self):
        self.profile(options=self.options)
        self.finish()
        link, target = self.link()
        before = (self.output / "aon.json").read_bytes()
        target.rename(self.folder / "gone")
        for command in (["finalize", "--quiet"], ["info"]):
            process = run(["aon", *command, self.output])
            self.assert_exit(process, 1 if command[0] == "finalize" else 0)
            for text in (str(link), str(target)):
                self.assertIn(text, process.stderr)
        self.assertEqual((self.output / "aon.json").read_bytes(), before, "the result stays")
        (self.folder / "gone").rename(target)
        self.finish()

    def test_link_to_nothing_beside_what_is_there(self):
        """No result yet, and the spool of another node is not reachable: what is there is written,
        and the ledger says that it is not all."""
        self.profile(options=["--no-assemble"])
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        link = self.output / "spool" / "far"
        link.symlink_to("/none/aon-1/far")
        process = run(["aon", "info", self.output])
        self.assert_exit(process, 1)
        self.assertIn("/none/aon-1/far", process.stderr)
        process = run(["aon", "finalize", "--quiet", "--drop-spool", self.output])
        self.assert_exit(process)
        self.assertIn("/none/aon-1/far", process.stderr)
        document = ledger(self.output)
        self.assertFalse(document["job"]["complete"])
        self.assertIn("/none/aon-1/far", "".join(document["assembly"]["warnings"]))
        self.assertTrue(link.is_symlink(), "nothing is dropped then")


if __name__ == "__main__":
    main()
