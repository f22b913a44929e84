"""Starts aon-agent alone, without aon-run, runs emitters against it and reads the spool back."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ["AON_BUILD"]
AGENT = os.path.join(BUILD, "bin", "aon-agent")
EMITTER = os.path.join(BUILD, "bin", "agent_emitter")
COUNT = os.path.join(BUILD, "bin", "agent_spool_count")


class Agent:
    """One agent with a job directory of its own; a context manager."""

    def __init__(self, *options, folder=None, program=AGENT):
        self.root = tempfile.mkdtemp(prefix="aon-agent-")
        self.folder = folder or os.path.join(self.root, "job")
        os.makedirs(self.folder, exist_ok=True)
        self.socket = os.path.join(self.root, "s")
        self.options = options
        self.program = program
        self.process = None

    def start(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        listener.bind(self.socket)
        listener.listen(128)
        os.set_inheritable(listener.fileno(), True)
        self.process = subprocess.Popen(
            [self.program, "--launch-id=test", f"--listen-fd={listener.fileno()}", "--lock-fd=-1",
             f"--output={self.folder}", "--node=n1", "--finalize-program=", *self.options],
            close_fds=False, stdin=subprocess.DEVNULL)
        listener.close()
        # A process waits 20 ms for its ring; on a loaded machine the agent itself needs longer to
        # start, and the process would write a file of its own.
        wait_until(lambda: self.worker() is not None)
        time.sleep(0.1)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def emitter(self, *arguments):
        """Starts an emitter; returns it when it has its ring. One that waited longer than 20 ms for
        it (the machine is busy) writes a file instead: it is taken back and started again."""
        for _ in range(20):
            known = len(self.fallbacks())
            count = self.attached_count()
            run = self.start_emitter(*arguments)
            wait_until(lambda: self.attached_count() > count or len(self.fallbacks()) > known)
            time.sleep(0.03)
            if len(self.fallbacks()) == known:
                return run
            run.kill()
            run.wait()
        fail("no emitter got a ring")

    def attached_count(self):
        """Connections of processes that the worker holds or held, from its rings in the keeper."""
        try:
            return len([1 for fd in os.listdir(f"/proc/{self.process.pid}/fd")
                        if "aon-ring" in os.readlink(f"/proc/{self.process.pid}/fd/{fd}")])
        except OSError:
            return 0

    def start_emitter(self, *arguments):
        environment = dict(os.environ, AON_SOCKET=self.socket, AON_OUTPUT=self.folder)
        environment.setdefault("AON_ATTACH_MS", "2000")  # cores that others use
        return subprocess.Popen([EMITTER, *map(str, arguments)], env=environment,
                                stdout=subprocess.PIPE, text=True)

    def worker(self):
        """pid of the worker, or None."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            children = open(path).read().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def signal_worker(self, number):
        pid = self.worker()
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout_s=60):
        code = self.process.wait(timeout_s)
        return code

    def fallbacks(self):
        """Processes that found no agent in time."""
        folder = os.path.join(self.folder, "spool")
        return [name for _, _, names in os.walk(folder) for name in names if "fallback" in name]

    def log(self):
        try:
            return open(os.path.join(self.folder, "agent.n1.log")).read()
        except OSError:
            return ""

    def count(self, folder=None):
        """Reads the spool back. Returns (exit status, processes, losses, text)."""
        done = subprocess.run([COUNT, folder or self.folder], capture_output=True, text=True,
                              timeout=120)
        processes = {}
        losses = {}
        for line in done.stdout.splitlines():
            words = line.split()
            if words[0] == "process" and len(words) > 8:
                values = dict(zip(words[2::2], map(int, words[3::2])))
                processes[int(words[1])] = values
            match = re.match(r"loss (\d+) (.*) (\d+)$", line)
            if match:
                losses[(int(match[1]), match[2])] = int(match[3])
        return done.returncode, processes, losses, done.stdout + done.stderr


def emitted(process):
    """(accepted, refused) as the emitter itself counted."""
    out, _ = process.communicate(timeout=120)
    accepted, refused = out.split()
    return int(accepted), int(refused)


def wait_until(condition, timeout_s=10.0):
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def fail(text):
    raise SystemExit("FAILED: " + text)


SIGKILL = signal.SIGKILL
SIGSTOP = signal.SIGSTOP
SIGCONT = signal.SIGCONT
