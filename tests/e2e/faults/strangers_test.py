"""Another user of the same node: hung up on by the agent and by the doorman, and without any part
in a job's files. Each test first gives him the folder, which he would not get past otherwise."""
import os
import signal
import subprocess
import unittest

from fault_test import BUILD, FaultCase, environment, run, wait_until

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


@unittest.skipUnless(os.geteuid() == 0, "a second user needs root")
class Strangers(FaultCase):
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
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        listed = run([*AS_NOBODY, "find", self.output, place, "-type", "f", "-readable"])
        self.assertEqual(listed.stdout, "")


if __name__ == "__main__":
    unittest.main()
