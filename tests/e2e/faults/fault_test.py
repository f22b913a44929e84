"""What the fault tests share: starting the worker program and looking at what is left of a job
after something went wrong. The law (emitted = spooled + lost) is checked against the worker's own
count, which it keeps in a file of its own."""
import contextlib
import ctypes
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from aon_test import (  # noqa: E402
    BUILD, IS_SANITIZED, SOURCE, TestCase, copy_installation, environment, ledger, main, run,
    wait_until,
)  # fmt: skip

WORKER = BUILD / "bin" / "fault_worker"
CALL = "MPI_Sendrecv"
IN_DELETE = 0x200  # inotify(7)


def processes():
    """(pid, parent, command line words) of every process of this machine that can be read."""
    result = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            result.append((int(entry.name), parent, [w.decode(errors="replace") for w in words]))
    return result


def agent_pids(output):
    """Keeper and worker of the agent that writes `output`, the keeper first."""
    argument = f"--output={output}"
    found = [(pid, parent) for pid, parent, words in processes() if argument in words]
    pids = {pid for pid, _ in found}
    return [p for p, parent in found if parent not in pids] + [
        p for p, parent in found if parent in pids
    ]


def worker_pids(folder):
    """Pids of the worker programs that count in `folder`."""
    return [
        pid
        for pid, _, words in processes()
        if words and words[0] == str(WORKER) and str(folder) in words
    ]


def wait_for_removal(folder, name, seconds=20):
    """Waits until somebody removes the file `name` from `folder`."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    try:
        if libc.inotify_add_watch(fd, os.fsencode(folder), IN_DELETE) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0] and name.encode() in os.read(fd, 65536):
                return
    finally:
        os.close(fd)
    raise AssertionError(f"timed out: removal of {name}")


class FaultCase(TestCase):
    """A test with a job directory `self.output` and a folder for the worker's counts."""

    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        self.counts = self.folder / "counts"
        self.counts.mkdir()

    def worker(self, mode, number):
        return [WORKER, mode, self.counts, number]

    def start(self, *command, **more):
        """Starts a command in the background, in a session of its own; it is killed at the end."""
        process = subprocess.Popen(
            [str(c) for c in command],
            env=more.pop("env", environment()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **more,
        )

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

        self.addCleanup(end)
        return process

    def start_job(self, ranks, *command, options=(), **more):
        return self.start(
            "mpirun", "-n", ranks, "aon-run", "-o", self.output, *options, "--", *command, **more
        )

    def kill_worker(self):
        """Kills the agent's worker; the keeper starts another one."""
        _, worker = wait_until(lambda: len(pids := agent_pids(self.output)) == 2 and pids,
                               what="keeper and worker")
        os.kill(worker, signal.SIGKILL)

    def own_count(self, rank):
        """Calls that the worker knows to have returned."""
        return struct.unpack_from("Q", (self.counts / f"count.{rank}").read_bytes())[0]

    def wait_for_calls(self, rank, at_least=1000):
        path = self.counts / f"count.{rank}"

        def has_made_them():
            return path.exists() and path.stat().st_size and self.own_count(rank) >= at_least

        wait_until(has_made_them, what=f"{at_least} calls of rank {rank}")

    def finish(self, seconds=60, output=None):
        """Waits for the agent to finish, makes sure of the archive, and returns the ledger, which
        keeps the law."""
        output = output or self.output
        end = time.monotonic() + seconds
        while True:
            process = run(["aon", "finalize", "--quiet", output])
            if process.returncode != 3 or time.monotonic() > end:
                break
            time.sleep(0.2)
        self.assert_exit(process)
        document = ledger(output)
        self.assert_law(document)
        return document

    def profile_count(self, rank, region=CALL, output=None):
        """Number of calls of `region` in the profile of `rank`."""
        import h5py

        with h5py.File((output or self.output) / "profile.h5") as file:
            names = [n.decode() if isinstance(n, bytes) else n for n in file["regions/name"][:]]
            if region not in names:
                return 0
            wanted = names.index(region)
            rows = zip(file["profile/rank"][:], file["profile/region"][:], file["profile/count"][:])
            return int(sum(c for r, g, c in rows if r == rank and g == wanted))

    def rank_of(self, document, rank):
        found = [r for r in document["ranks"] if r["rank"] == rank]
        self.assertEqual(len(found), 1, f"rank {rank} in the ledger")
        return found[0]

    def assert_every_call(self, document, rank, killed=False):
        """Every call of the worker was recorded or refused: with MPI_Init and MPI_Finalize these
        are all records there are. One interrupted by a kill may be there too. Returns calls made,
        calls in the profile, and the rank's entry of the ledger."""
        made = self.own_count(rank)
        entry = self.rank_of(document, rank)
        seen = self.profile_count(rank)
        if killed:
            self.assertIn(entry["emitted"] - made, (1, 2), f"rank {rank}: MPI_Init, one cut off")
            self.assertLessEqual(seen, made + 1)
        else:
            self.assertEqual(entry["emitted"], made + 2, f"rank {rank}: MPI_Init and _Finalize")
            self.assertLessEqual(seen, made)
        if entry["lost"] == 0:
            self.assertGreaterEqual(seen, made, f"rank {rank}: calls neither seen nor lost")
        return made, seen, entry

    def assert_same_as_without(self, command, **more):
        """Exit code and output of `command` below aon-run are what they are without it."""
        plain = run(command, **more)
        profiled = run(["aon-run", "-o", self.output, *command], **more)
        self.assertEqual(profiled.returncode, plain.returncode, profiled.stderr)
        self.assertEqual(profiled.stdout, plain.stdout)
        return profiled
