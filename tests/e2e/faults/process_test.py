"""Programs that are not one plain MPI program: shells, storms of children and threads, several
programs, ranks without AON, descriptors and bindings of the launcher."""
import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from fault_test import (
    BUILD, IS_SANITIZED, WORKER, FaultCase, agent_pids, environment, ledger, main, processes, run,
    wait_until, worker_pids,
)  # fmt: skip


class NoMpi(FaultCase):
    def test_serial_program(self):
        process = self.assert_same_as_without(["/bin/echo", "one", "", "three"])
        self.assertIn("nothing was recorded", process.stderr)
        self.assertEqual(self.finish()["ranks"], [])

    def test_a_plugin_of_another_is_named_where_nothing_was_recorded(self):
        env = environment(NCCL_PROFILER_PLUGIN="/other/plugin.so")
        process = run(["aon-run", "-o", self.output, "/bin/echo"], env=env)
        self.assert_exit(process)
        self.assertIn("nothing was recorded: NCCL_PROFILER_PLUGIN was set by the user and is left "
                      "alone (unset NCCL_PROFILER_PLUGIN); no process called MPI", process.stderr)
        (node,) = ledger(self.output)["nodes"]
        self.assertEqual(node["providers"]["nccl"]["state"], "off")

    def test_program_without_the_preload_is_told_of(self):
        process = self.assert_same_as_without(["env", "-u", "LD_PRELOAD", *self.worker("calls", 3)])
        self.assertIn("nothing was recorded", process.stderr)
        self.assertIn("LD_PRELOAD was taken", process.stderr)

    def test_another_aon_run_with_a_directory_of_its_own(self):
        """What it started is there, and not said to be linked statically, as aon-run is."""
        inner = self.folder / "inner"
        program = ["aon-run", "-o", inner, *self.worker("calls", 5)]
        process = run(["aon-run", "-o", self.output, *program])
        self.assert_exit(process)
        self.assertTrue(ledger(inner)["ranks"])
        self.assertIn("or another aon-run below it wrote a directory of its own", process.stderr)
        self.assertNotIn("statically", process.stderr)

    def test_aon_run_that_outlives_the_launch(self):
        """As in a shell in the background: what it starts is a launch of its own, not lost."""
        kept = run(["aon-run", "-o", self.output, "env", "-0"])
        self.assert_exit(kept)
        left = dict(entry.split("=", 1) for entry in kept.stdout.split("\0") if entry)
        self.assertEqual(left["AON_OUTPUT"], str(self.output))
        before = sorted(self.output.rglob("*"))
        self.assert_exit(run(["aon-run", *self.worker("calls", 5)], env=left, cwd=self.folder))
        (own,) = self.folder.glob("aon-*")
        self.assertEqual(len(self.finish(output=own)["ranks"]), 1)
        self.assertEqual(sorted(self.output.rglob("*")), before)

    def test_aon_run_that_outlives_a_launch_whose_spool_was_dropped(self):
        """It is the same launch to the launcher, and would overwrite its archive."""
        kept = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--drop-spool", "bash", "-c",
                    '"$@" > "$0"; env -0', self.folder / "said", *self.worker("calls", 5)])
        self.assert_exit(kept)
        left = dict(entry.split("=", 1) for entry in kept.stdout.split("\0") if "=" in entry)
        before = sorted(self.output.rglob("*"))
        self.assertIn(self.output / "traces.otf2", before)
        self.assertNotIn(self.output / "spool", before)
        ledger_before = (self.output / "aon.json").read_text()
        self.assert_exit(run(["aon-run", "/bin/true"], env=left, cwd=self.folder))
        self.assertEqual(sorted(self.output.rglob("*")), before)
        self.assertEqual((self.output / "aon.json").read_text(), ledger_before)

    def test_aon_run_whose_outer_agent_was_killed(self):
        """What it records belongs to the launch all the same."""
        # Its worker may begin when its keeper is found already.
        script = 'while pkill -KILL -f "[a]on-agent.*$0"; do sleep 0.1; done; aon-run "$@"'
        process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "bash", "-c", script,
                       self.output, *self.worker("calls", 5)], cwd=self.folder)
        self.assert_exit(process)
        self.assertEqual(list(self.folder.glob("aon-*")), [])
        self.assert_every_call(self.finish(), 0)

    def test_aon_run_in_a_script_that_changed_the_preload(self):
        for number, change in enumerate(("unset LD_PRELOAD", "export LD_PRELOAD=libm.so.6", ":")):
            self.output = self.folder / f"job-{number}"
            script = f'{change}; aon-run "$@"; exit 5'
            process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "bash", "-c", script,
                           "bash", *self.worker("calls", 5)])
            self.assertEqual(process.returncode, 5, process.stderr)
            self.assert_every_call(self.finish(), 0)

    def test_shell(self):
        script = "echo out; echo err >&2; (exit 3); echo $?; true | cat; exit 5"
        process = self.assert_same_as_without(["bash", "-c", script])
        self.assertEqual(process.returncode, 5)

    def test_death_by_signal(self):
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM):
            self.assert_same_as_without(["sh", "-c", f"kill -{int(number)} $$"])

    def test_script_without_an_interpreter_line(self):
        script = self.folder / "plain"
        script.write_text("echo plain\n")
        script.chmod(0o755)
        process = run(["aon-run", "-o", self.output, script])
        self.assert_exit(process)
        self.assertEqual(process.stdout, "plain\n")

    def test_standard_streams_pass_through(self):
        line = f'printf "a\\nb\\n" | aon-run -o {self.output} cat | tail -n 1'
        process = run(["bash", "-c", line])
        self.assertEqual(process.stdout, "b\n")

    def test_standard_streams_that_are_closed(self):
        """They are closed for the program, too, and nobody else's descriptor takes their place."""
        script = ('exec 9> "$0"; for fd in 0 1 2; do '
                  'if [ -e /proc/$$/fd/$fd ]; then echo $fd >&9; fi; done; exit 5')
        for closed, left in (("<&-", "1 2"), (">&-", "0 2"), ("2>&-", "0 1"), ("<&- >&-", "2"),
                             ("<&- >&- 2>&-", "")):
            with self.subTest(closed=closed):
                self.output = self.folder / f"job-{closed.replace('&-', '-')}"
                seen = self.folder / "seen"
                process = run(["bash", "-c", f'"$@" {closed}', "bash", "aon-run", "-o", self.output,
                               "bash", "-c", script, seen], timeout_s=30)
                self.assert_exit(process, 5)
                self.assertEqual(seen.read_text().split(), left.split())
                self.assertEqual(self.finish()["ranks"], [])
                self.assert_exit(run(["bash", "-c", f'aon finalize "$0" {closed}', self.output]))

    def test_standard_error_that_nobody_reads(self):
        """aon-run has something to say before the program starts, and the signal of the pipe would
        end it."""
        seen = self.folder / "seen"
        reader, writer = os.pipe()
        os.close(reader)
        limited = f'ulimit -n 30; exec aon-run -o {self.output} sh -c "echo ran > {seen}"'
        process = subprocess.run(["bash", "-c", limited], stderr=writer, env=environment(),
                                 timeout=30, check=False)
        os.close(writer)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen.read_text(), "ran\n")

    @unittest.skipIf(IS_SANITIZED, "a sanitizer takes more than there is")
    def test_small_stack(self):
        """It is the program's: threads of the agent have more, and the others need no more."""
        for kib in (64, 128):
            self.output = self.folder / f"job-{kib}"
            script = f'ulimit -s {kib}; exec aon-run -o "$0" dd if=/dev/zero of=/dev/null count=9'
            begun = time.monotonic()
            process = run(["bash", "-c", script, self.output])
            self.assert_exit(process)
            self.assertLess(time.monotonic() - begun, 30)
            self.assertIn("nothing was recorded", process.stderr)
            self.finish()
            for log in self.output.glob("agent.*.log"):  # an empty one goes with its agent
                self.assertEqual(log.stat().st_size, 0)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer takes more than there is")
    def test_agent_that_cannot_begin(self):
        """What it has to say is in its log, and aon-run says it."""
        script = f"ulimit -v 100000; exec aon-run -o {self.output} echo ran"
        process = run(["bash", "-c", script])
        self.assert_exit(process)
        self.assertEqual(process.stdout, "ran\n")
        self.assertRegex(process.stderr, r"ended early \(cannot .*\); run: aon finalize")

    def test_signals_that_were_ignored_or_blocked(self):
        """As daemons leave them to their jobs: the end of the program is seen all the same."""
        start = ("import os, sys; from signal import *; {}; "
                 "os.execvp(sys.argv[1], sys.argv[1:])")
        program = ["bash", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 5"]
        for number, before in enumerate(("signal(SIGCHLD, SIG_IGN)", "signal(SIGTERM, SIG_IGN)",
                                         "pthread_sigmask(SIG_BLOCK, range(1, 65))")):
            with self.subTest(before=before):
                self.output = self.folder / f"job-{number}"
                with_it = [sys.executable, "-c", start.format(before)]
                plain = run([*with_it, *program])
                process = run([*with_it, "aon-run", "-o", self.output, *program], timeout_s=30)
                self.assert_exit(process, 5)
                self.assertEqual(process.stdout, plain.stdout)
                self.assert_exit(run([*with_it, "aon", "finalize", self.output], timeout_s=30))


class Storms(FaultCase):
    def check(self, mode, number, calls):
        process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, *self.worker(mode, number)],
                      timeout_s=240)
        self.assert_exit(process)
        self.assertIn(f"made {calls} calls", process.stdout)
        document = self.finish()
        made, _, entry = self.assert_every_call(document, 0)
        self.assertEqual(made, calls)
        return entry

    def test_forks_and_execs(self):
        self.check("forks", 300, 3000)

    def test_20000_short_threads(self):
        entry = self.check("threads", 20000, 200000)
        self.assertLess(len(entry["threads"]), 100, "ended threads hand their location on")
        self.assert_archive_opens_with_1024_descriptors()

    def test_20000_threads_a_hundred_at_a_time(self):
        entry = self.check("crowds", 20000, 200000)
        self.assertGreater(len(entry["threads"]), 100, "the main thread and a crowd")
        self.assertLess(len(entry["threads"]), 500, "ended threads hand their location on")
        self.assert_archive_opens_with_1024_descriptors()

    def assert_archive_opens_with_1024_descriptors(self):
        """otf2-print opens the files of all locations at once."""
        script = 'ulimit -n 1024; exec otf2-print "$@"'
        process = run(["bash", "-c", script, "bash", "--silent", "-Werror",
                       self.output / "traces.otf2"], file_limit_bytes=64 << 20)
        self.assert_exit(process)
        self.assertEqual(process.stderr, "")


# As where a container's filter, or a kernel before 5.3, gives out no pidfd.
NO_PIDFD = """
import ctypes, os, struct, sys
CODE = [(0x20, 0, 0, 0), (0x15, 0, 1, 434), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *words) for words in CODE))
program = ctypes.create_string_buffer(struct.pack("H6xQ", len(CODE), ctypes.addressof(code)))
prctl = ctypes.CDLL(None).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program):
    sys.exit(99)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class WithoutPidfd(FaultCase):
    def test_files_come_at_once_of_programs_that_begin_late_too(self):
        program = ["sh", "-c", 'sleep 3; exec "$@"', "sh", *self.worker("calls", 1000)]
        done = run(["mpirun", "-n", 1, "python3", "-c", NO_PIDFD, "aon-run", "--wait", 20,
                    "-o", self.output, *program])  # fmt: skip
        self.assert_exit(done)
        self.assertIn("traces.otf2", done.stderr)
        self.assert_every_call(self.finish(), 0)


class CoreFiles(FaultCase):
    def test_rings_are_in_none(self):
        self.start_job(1, *self.worker("busy", 20))
        self.wait_for_calls(0, at_least=1)
        maps = pathlib.Path(f"/proc/{worker_pids(self.counts)[0]}/smaps").read_text()
        ring = maps.partition("aon-ring")[2]
        flags = ring.partition("VmFlags:")[2].partition("\n")[0]
        self.assertIn("dd", flags.split(), "as madvise(MADV_DONTDUMP) sets it")


class SeveralPrograms(FaultCase):
    def test_two_programs_of_one_launch(self):
        second = self.folder / "second"
        second.symlink_to(WORKER)
        process = run(["mpirun",
                       "-n", 2, "aon-run", "-o", self.output, *self.worker("calls", 100),
                       ":",
                       "-n", 2, "aon-run", "-o", self.output, second, "calls", self.counts, 200])
        self.assert_exit(process)
        document = self.finish()
        self.assertEqual(sorted(r["rank"] for r in document["ranks"]), [0, 1, 2, 3])
        for rank in range(4):
            made, seen, _ = self.assert_every_call(document, rank)
            self.assertEqual(made, 100 if rank < 2 else 200)
            self.assertEqual(seen, made)
        self.assertEqual(len(list(self.folder.glob("job*"))), 1)

    def test_rank_without_aon_run(self):
        process = run(["mpirun",
                       "-n", 1, "aon-run", "-o", self.output, *self.worker("calls", 100),
                       ":", "-n", 1, *self.worker("calls", 100)])
        self.assert_exit(process)
        document = self.finish()
        self.assertEqual([r["rank"] for r in document["ranks"] if r.get("pid")], [0])
        self.assertEqual(document["job"]["incomplete_ranks"], [1], "it is named, and nothing more")
        self.assert_every_call(document, 0)

    def test_two_programs_in_one_shell(self):
        worker = " ".join(str(w) for w in self.worker("calls", 100))
        process = run(["aon-run", "-o", self.output, "bash", "-c", f"{worker}; {worker}"])
        self.assert_exit(process)
        document = self.finish()
        self.assertEqual(len(document["ranks"]), 2)
        self.assertEqual(len({r["pid"] for r in document["ranks"]}), 2)


class PmiSocket(FaultCase):
    """A launcher as MPICH's hydra: each rank inherits a socket whose number stands in PMI_FD, and
    the launcher takes the end of file on it for the end of the rank."""

    # Of high numbers, so that nothing of ours can be in their place.
    FIRST_DESCRIPTOR = 700
    PROGRAM = 'printf "cmd=init\\n" >&"$PMI_FD"; read -r answer <&"$PMI_FD"; echo "$answer"; exit 0'

    def start_rank(self, rank, rank_count):
        """(aon-run, the launcher's end of its socket, the read end of a pipe that it inherits)."""
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, self.FIRST_DESCRIPTOR)
                for fd in (theirs.fileno(), write_end)]
        variables = environment(PMI_FD=high[0], PMI_RANK=rank, PMI_SIZE=rank_count)
        process = self.start("aon-run", "-o", self.output, "--wait", "60", "bash", "-c",
                             self.PROGRAM, env=variables, pass_fds=high)
        theirs.close()
        for fd in (write_end, *high):
            os.close(fd)
        ours.settimeout(20)
        pipe = os.fdopen(read_end, "rb")
        self.addCleanup(ours.close)
        self.addCleanup(pipe.close)
        return process, ours, pipe

    def test_its_end_comes_with_the_program_while_files_are_awaited(self):
        ranks = [self.start_rank(rank, 2) for rank in (0, 1)]
        for _, ours, _ in ranks:
            self.assertEqual(ours.recv(64), b"cmd=init\n")
        agent = wait_until(lambda: len(pids := agent_pids(self.output)) == 2 and pids, what="agent")
        for pid in agent:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(self.resume, pid)
        for _, ours, _ in ranks:
            ours.sendall(b"cmd=go\n")
        for process, ours, pipe in ranks:
            self.assertEqual(ours.recv(64), b"", "end of file on PMI_FD")
            self.assertEqual(pipe.read(), b"", "end of file on an inherited pipe")
            self.assertEqual(process.stdout.readline(), "cmd=go\n")
        for process, _, _ in ranks:
            self.assertEqual(process.wait(timeout=20), 0, "a rank ends with its program")
        for pid in agent:
            self.resume(pid)
        said = [process.communicate(timeout=60)[1] for process, _, _ in ranks]
        self.assertEqual(len([err for err in said if str(self.output) in err]), 1, said)

    @staticmethod
    def resume(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class Launcher(FaultCase):
    def descriptors_to(self, pid, target):
        folder = pathlib.Path(f"/proc/{pid}/fd")
        with contextlib.suppress(FileNotFoundError):  # it has ended
            return [link.name for link in folder.iterdir() if os.readlink(link) == target]
        return []

    def test_descriptors_belong_to_the_program_alone(self):
        self.check_descriptors_of_the_program()

    def test_descriptors_belong_to_the_program_alone_on_an_old_kernel(self):
        self.check_descriptors_of_the_program(BUILD / "bin" / "old_kernel")

    def check_descriptors_of_the_program(self, *before):
        read_end, write_end = os.pipe()
        target = os.readlink(f"/proc/self/fd/{write_end}")
        process = self.start(*before, "aon-run", "-o", self.output, "sleep", "3",
                             pass_fds=[write_end])
        os.close(write_end)
        keeper = wait_until(lambda: agent_pids(self.output), what="agent")
        program = wait_until(
            lambda: [p for p, parent, words in processes() if parent == process.pid
                     and words == ["sleep", "3"]], what="program")
        time.sleep(0.2)
        self.assertEqual(len(self.descriptors_to(program[0], target)), 1)
        helpers = {pid for pid, parent, _ in processes() if parent == process.pid} - {program[0]}
        for pid in {process.pid, *helpers, *keeper, *agent_pids(self.output)}:
            self.assertEqual(self.descriptors_to(pid, target), [], f"process {pid}")
        os.kill(program[0], signal.SIGKILL)
        os.set_blocking(read_end, True)
        self.assertEqual(os.read(read_end, 1), b"", "end of file comes with the program's end")
        os.close(read_end)

    def test_more_ranks_at_once_than_may_wait_for_the_agent(self):
        """It is about to begin, and others have called: so many that there is no room."""
        words, env = ["aon-run", "-o", self.output], environment(PMIX_NAMESPACE="launch")
        plan = run([*words, "--dry-run", "true"], env=env).stdout
        path = pathlib.Path(plan.partition("set AON_SOCKET=")[2].partition("\n")[0])
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as held:
            def caller():
                return held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))

            lock = pathlib.Path(f"{path}.lock")
            fcntl.flock(held.enter_context(lock.open("w")), fcntl.LOCK_EX)
            agent = caller()
            agent.bind(str(path))
            self.addCleanup(lambda: (path.unlink(), lock.unlink()))
            agent.listen(0)
            with contextlib.suppress(BlockingIOError):
                while one := caller():
                    one.setblocking(False)
                    one.connect(str(path))
            process = run([*words, "sh", "-c", "echo $AON_SOCKET"], env=env)
        self.assert_exit(process)
        self.assertEqual((process.stdout, process.stderr), (f"{path}\n", ""))

    def test_agent_does_not_sit_on_the_ranks_core(self):
        if len(os.sched_getaffinity(0) - {0}) == 0:
            self.skipTest("one core only")
        process = self.start("taskset", "-c", "0", "aon-run", "-o", self.output,
                             *self.worker("loop", 3))
        self.wait_for_calls(0)
        ranks = worker_pids(self.counts)
        self.assertTrue(any(os.sched_getaffinity(p) == {0} for p in ranks), "it stays bound")
        keeper, worker = agent_pids(self.output)
        self.assertGreater(len(os.sched_getaffinity(keeper)), 1, "it was not born of a bound rank")
        threads = pathlib.Path(f"/proc/{worker}/task")
        wait_until(
            lambda: all(0 not in os.sched_getaffinity(int(t.name)) for t in threads.iterdir()),
            what="all threads of the agent to leave core 0")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assert_every_call(self.finish(), 0)

    def test_signals_reach_the_program(self):
        script = "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done"
        process = self.start("aon-run", "-o", self.output, "bash", "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=20)
        self.assertEqual((out, process.returncode), ("caught\n", 9))

    def test_signals_that_the_program_sends_to_its_parent(self):
        for number, wait in enumerate(("0", "60")):
            self.output = self.folder / f"job-{number}"
            script = """trap 'echo told' USR1; "$@" bash -c 'kill -USR1 $PPID; exit 9'; echo $?"""
            words = ["aon-run", "-o", self.output, "--wait", wait]
            process = run(["bash", "-c", script, "bash", *words])
            self.assertEqual(process.stdout, "told\n9\n")

    def test_a_timer_that_was_set_before_is_the_programs(self):
        set_timer = "import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])"
        self.assert_exit(run([sys.executable, "-c", set_timer, "aon-run", "-o", self.output,
                              "sleep", "30"]), -signal.SIGALRM)

    def test_nobody_stays_who_is_not_to_wait(self):
        process = self.start("aon-run", "-o", self.output, "--wait", "0", "bash", "-c",
                             "echo $$; exit 9")
        out, _ = process.communicate(timeout=20)
        self.assertEqual((out, process.returncode), (f"{process.pid}\n", 9))


if __name__ == "__main__":
    main()
