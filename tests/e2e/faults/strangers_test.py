"""Another user of the same node: hung up on by the agent and by the doorman, and without any part
in a job's files. Each test first gives him the folder, which he would not get past otherwise.
And a process of the same user that lies: about who it is, or with descriptors that nobody asked
for."""
import contextlib
import os
import pathlib
import signal
import subprocess
import unittest

from fault_test import (
    BUILD, FaultCase, agent_pids, environment, main, run, wait_until, worker_pids,
)  # fmt: skip

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# Says "ended" where the other end hangs up at once, "open" where it does not.
CALL = """
import socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
connection.settimeout(0.6)  # both wait longer for a first word
try:
    print("ended" if connection.recv(64) == b"" else "spoken to")
except ConnectionResetError:
    print("ended")
except TimeoutError:
    print("open")
"""

# core/agent/protocol.h
MESSAGES = """
import os, socket, struct, sys
HELLO, WELCOME, HAND_OVER = 1, 2, 7
def message(kind, content=b""):
    return struct.pack("<4I", 0x414F4E31, 2, kind, 16 + len(content)) + content
def hello(pid):
    return message(HELLO, struct.pack("<iiIIQ256s72s", pid, -1, 0, 0, 0, b"liar", b""))
def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    connection.settimeout(20)
    return connection
def answer(connection):
    try:
        words, descriptors, _, _ = socket.recv_fds(connection, 1024, 4)
    except ConnectionResetError:
        return "ended", []
    is_welcome = len(words) >= 16 and struct.unpack_from("<4I", words)[2] == WELCOME
    return "welcome" if is_welcome else "told no" if words else "ended", descriptors
"""
# A program of user argv[2] calls somebody else, who hands its connection over to the agent; says
# what the program got.
HAND_OVER = MESSAGES + """
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("")  # an abstract name, which any user may call
listener.listen()
if os.fork() == 0:
    os.setgroups([])
    os.setresgid(*[int(sys.argv[2])] * 3)
    os.setresuid(*[int(sys.argv[2])] * 3)
    program = connect(listener.getsockname())
    program.send(hello(os.getpid()))
    print(answer(program)[0])
    sys.exit()
program, _ = listener.accept()
program.recv(1, socket.MSG_PEEK)  # its Hello waits there
agent = connect(sys.argv[1])
socket.send_fds(agent, [message(HAND_OVER)], [program.fileno()])
program.close()
os.wait()
"""
# Says Hello as process argv[2], with a memory file as if that were a ring, then hands over and
# sends what is no connection. Says whether the ring that comes back is another, its own pid, and
# whether what it sent is unchanged.
LIE = MESSAGES + """
mine = os.memfd_create("of-a-liar")
os.write(mine, b"x" * 65536)
agent = connect(sys.argv[1])
socket.send_fds(agent, [hello(int(sys.argv[2]))], [mine])
said, (ring, *_) = answer(agent)
is_another = os.fstat(ring).st_ino != os.fstat(mine).st_ino
for content, descriptors in (
    (message(HAND_OVER), [mine]), (message(HAND_OVER), [mine, mine]), (message(HAND_OVER), []),
    (hello(1)[:-1], [mine]), (message(99), [mine] * 8), (message(HAND_OVER), [mine] * 100),
):
    other = connect(sys.argv[1])
    socket.send_fds(other, [content], descriptors)
    other.shutdown(socket.SHUT_WR)
    if answer(other)[0] != "ended":
        sys.exit("spoken to")
is_unchanged = os.pread(mine, 1 << 20, 0) == b"x" * 65536
print(said, is_another, is_unchanged, os.getpid())
"""


class StrangersCase(FaultCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.session = self.folder / "session"
        self.session.mkdir(mode=0o700)
        self.env = environment(XDG_RUNTIME_DIR=self.session)

    def socket(self):
        """The only one there is."""

        def sockets():
            return [p for p in self.session.glob("aon/*") if p.is_socket()]

        return wait_until(sockets, what="a socket")[0]

    def say(self, script, *arguments):
        done = run(["/usr/bin/python3", "-c", script, *arguments])
        self.assert_exit(done)
        return done.stdout.split()


@unittest.skipUnless(os.geteuid() == 0, "a second user needs root")
class Strangers(StrangersCase):
    def let_in(self, path):
        path.chmod(0o777)
        for folder in (path.parent, self.session):
            folder.chmod(0o755)

    def call(self, path, before=()):
        return run([*before, "/usr/bin/python3", "-c", CALL, path])

    def assert_hung_up_on(self, path):
        denied = self.call(path, AS_NOBODY)
        self.assertIn("PermissionError", denied.stderr, "he does not get there")
        self.let_in(path)
        self.assertEqual(self.call(path).stdout, "open\n")
        self.assertEqual(self.call(path, AS_NOBODY).stdout, "ended\n")

    def test_by_the_agent(self):
        process = self.start("aon-run", "-o", self.output, "sleep", "5", env=self.env)
        self.assert_hung_up_on(self.socket())
        log = next(self.output.glob("agent.*.log"))
        wait_until(lambda: f"refused a connection of uid {NOBODY}" in log.read_text(), what="log")
        self.assertEqual(process.wait(30), 0)

    def test_by_the_agent_whoever_hands_him_over(self):
        words = ["aon-run", "-o", self.output, "sleep", "1000"]
        process = self.start(*words, env=self.env)
        path = self.socket()
        self.assertEqual(self.say(HAND_OVER, path, NOBODY), ["ended"])
        self.assertEqual(self.say(HAND_OVER, path, 0), ["welcome"])
        log = next(self.output.glob("agent.*.log"))
        self.assertIn(f"refused a connection of uid {NOBODY}", log.read_text())
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        self.finish()

    def test_by_the_doorman(self):
        with subprocess.Popen(["sleep", "1000"]) as task:
            self.addCleanup(task.send_signal, signal.SIGKILL)
            job = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_TASK_PID": str(task.pid),
                   "SLURM_SUBMIT_DIR": str(self.folder)}
            self.assert_exit(run([BUILD / "bin" / "aon-task"], env=self.env | job))
            self.assert_hung_up_on(self.socket())
            task.kill()

    def test_reads_nothing_of_a_job(self):
        place = self.folder / "place"
        place.mkdir(mode=0o755)
        program = [BUILD / "bin" / "aon-canary-program"]
        words = ["aon-run", "-o", self.output, "--spool-dir", place, *program]
        self.assert_exit(run(words, env=self.env), 42)
        self.output.chmod(0o755)  # he is past the first door
        found = [p for top in (self.output, place) for p in top.rglob("*") if not p.is_symlink()]
        self.assertGreater(len(found), 8)
        names = {p.name for p in found}
        self.assertLessEqual({"aon.json", "traces.otf2", "profile.h5", "definitions.aon"}, names)
        for path in found:
            with contextlib.suppress(FileNotFoundError):  # the agent is still at its end
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        listed = run([*AS_NOBODY, "find", self.output, place, "-type", "f", "-readable"])
        self.assertEqual(listed.stdout, "")


@unittest.skipUnless(os.geteuid() == 0, "needs root to work on another user's directory")
class RootsHelp(StrangersCase):
    """Root finishes somebody else's job."""

    def setUp(self):
        super().setUp()
        self.assert_exit(run(["aon-run", "-o", self.output, "--no-assemble",
                              *self.worker("calls", 1000)], env=self.env))
        for path in [self.output, *self.output.rglob("*")]:
            with contextlib.suppress(FileNotFoundError):  # the agent is still at its end
                os.lchown(path, NOBODY, NOBODY)

    def assert_all_is_of(self, user):
        others = [p for p in [self.output, *self.output.rglob("*")] if p.lstat().st_uid != user]
        self.assertEqual(others, [])

    def test_leaves_all_to_the_owner(self):
        self.assert_exit(run(["aon", "finalize", self.output]))
        self.assertTrue((self.output / "aon.json").exists())
        self.assert_all_is_of(NOBODY)
        self.assertEqual((self.output / "aon.json").stat().st_gid, NOBODY)
        self.finish()
        self.assert_all_is_of(NOBODY)

    def test_follows_no_link_to_what_is_roots(self):
        target = self.folder / "roots"
        target.write_text("mine\n")
        target.chmod(0o600)
        for name in ("summary.txt", "aon.json", "assemble.lease"):
            (self.output / name).symlink_to(target)
            os.lchown(self.output / name, NOBODY, NOBODY)
        run(["aon", "finalize", self.output])
        self.assertEqual((target.read_text(), target.stat().st_uid), ("mine\n", 0))

    def test_where_the_owner_does_not_get_to_is_done_by_root(self):
        self.folder.chmod(0o700)
        process = run(["aon", "finalize", self.output])
        self.assert_exit(process)
        self.assertIn(f"user {NOBODY}", process.stderr)
        self.assertEqual((self.output / "aon.json").stat().st_uid, 0)


class Liars(StrangersCase):
    def descriptors(self):
        """What the agent, keeper and worker, has open."""
        for pid in agent_pids(self.output):
            for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    yield os.readlink(link)

    def test_get_what_is_theirs_and_leave_nothing(self):
        run_of_victim = self.start("aon-run", "-o", self.output, *self.worker("pace", 100),
                                   env=self.env)
        self.wait_for_calls(0)
        (victim,) = worker_pids(self.counts)
        said, is_another, is_unchanged, liar = self.say(LIE, self.socket(), victim)
        self.assertEqual((said, is_another, is_unchanged), ("welcome", "True", "True"))
        self.assertTrue(any("aon-ring" in name for name in self.descriptors()))
        self.assertFalse([name for name in self.descriptors() if "of-a-liar" in name])
        known = self.own_count(0)
        self.wait_for_calls(0, known + 1000)
        os.kill(victim, signal.SIGTERM)
        run_of_victim.wait(30)
        document = self.finish()
        self.assertCountEqual([r["pid"] for r in document["ranks"]], [victim, int(liar)])
        # The victim's calls after the lie are recorded, too.
        self.assertGreaterEqual(self.profile_count(0), known + 1000)


if __name__ == "__main__":
    main()
