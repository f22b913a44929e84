"""The node's service: what it reads reaches a job, its end is told, it gives up root, and it does
nothing while nobody reads."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

from aon_test import (
    IS_SANITIZED, TestCase, build_for_others, copy_installation, environment, ledger, main, profile,
    run, wait_until,
)  # fmt: skip

NOBODY = 65534
NODE = build_for_others() / "bin" / "aon-node"
PERFMON_AND_SYSLOG = 1 << 38 | 1 << 34

HAS_LOG = 24  # core/service/page.h
READ_PAGE = """
import mmap, os, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
_, (page, *_), _, _ = socket.recv_fds(connection, 64, 1)
size = os.fstat(page).st_size
sys.stdout.buffer.write(mmap.mmap(page, size, mmap.MAP_SHARED, mmap.PROT_READ)[:])
"""


class Service(TestCase):
    def setUp(self):
        super().setUp()
        self.socket = self.folder / "run" / "node.sock"
        self.folder.chmod(0o755)

    def start(self, *options, before=()):
        process = subprocess.Popen([*before, NODE, "--socket", self.socket, *options],
                                   env=environment(), stderr=subprocess.PIPE, text=True)

        def end():
            process.terminate()
            process.communicate(timeout=20)

        self.addCleanup(end)
        wait_until(self.socket.exists, what="the service's socket")
        return process

    def status(self, process):
        text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)

    def job(self, output, seconds=1):
        process = profile(1, output, "bash", "-c", f"sleep {seconds}",
                          options=["--without", "mpi"],
                          env=environment(AON_NODE_SOCKET=self.socket))
        self.assert_exit(process)
        run(["aon", "finalize", "--quiet", output])
        return ledger(output)["nodes"][0]["providers"]

    def test_what_it_reads_is_in_the_job(self):
        import h5py

        self.start()
        interfaces = set(os.listdir("/sys/class/net"))
        providers = self.job(self.folder / "job", seconds=3)
        interfaces &= set(os.listdir("/sys/class/net"))  # others have come or gone
        self.assertEqual(providers["network"]["state"], "on")
        with h5py.File(self.folder / "job/profile.h5") as file:
            group = file["series/node_0/network"]
            name = next(f"{i}-received" for i in sorted(interfaces) if f"{i}-received" in group)
            values = list(group[name])
            self.assertEqual(group[name].attrs["units"], "By")
        self.assertEqual(values[0], 0, "counts begin with the job")
        self.assertEqual(values, sorted(values))
        # Not shared by the service: the agent reads as ever.
        self.assertEqual(providers["node"]["state"], "on")

    def test_it_is_asked_only_for_what_reads_the_node_alone(self):
        for name in ("nosuch", "perf", "process", "example", "network,perf"):
            done = run([NODE, "--socket", self.socket, "--providers", name])
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)
            self.assertIn("those that do: energy, membw, network", done.stderr)
            self.assertFalse(self.socket.exists())

    def doctor(self, *before):
        env = environment(AON_NODE_SOCKET=self.socket)
        done = run([*before, NODE.parent / "aon", "doctor", "--json"], env=env)
        self.assert_exit(done)
        return {check["name"]: check for check in json.loads(done.stdout)}

    def test_doctor_says_what_it_reads(self):
        service = self.start("--providers", "network")
        self.assertEqual(self.doctor()["node service"]["detail"], "reads network")
        service.terminate()
        service.wait(timeout=20)
        self.start("--providers", "network,membw")
        found = self.doctor()["node service"]
        self.assertEqual(found["state"], "yes")
        self.assertRegex(found["detail"], r"^reads network(, membw|; not membw \(.+\))$")

    @unittest.skipUnless(os.geteuid() == 0, "the kernel's log needs root")
    def test_doctor_says_that_it_reads_the_kernels_log(self):
        self.start()
        if not int.from_bytes(self.page_seen_by(NOBODY)[HAS_LOG:HAS_LOG + 4], "little"):
            self.skipTest("the service may not read the kernel's log here")
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        found = self.doctor(*as_nobody)["crash log"]
        if found["detail"].startswith("/dev/kmsg"):
            self.skipTest("every user may read the kernel's log here")
        self.assertEqual(found["state"], "yes")
        self.assertIn("the node service reads", found["detail"])

    def test_its_end_is_told(self):
        service = self.start()

        killer = threading.Timer(1.5, service.kill)
        killer.start()
        providers = self.job(self.folder / "job", seconds=4)
        killer.join()
        self.assertEqual(providers["network"]["state"], "degraded")
        self.assertIn("the node's service has ended", providers["network"]["reason"])
        # Its socket is still there and answers nobody: the next job reads for itself.
        providers = self.job(self.folder / "next")
        self.assertEqual(providers["network"]["state"], "on")

    def test_without_readers_it_sleeps_and_is_small(self):
        service = self.start()
        self.job(self.folder / "job")
        time.sleep(0.5)  # what the last reader left
        before = self.status(service)
        time.sleep(2)
        after = self.status(service)
        for name in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"):
            self.assertEqual(before[name], after[name], name)
        if not IS_SANITIZED:
            self.assertLess(int(after["VmRSS"].split()[0]), 20 << 10)

    def page_seen_by(self, user):
        """Bytes of the page, as a process of another user reads them."""
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        done = subprocess.run([*words, "/usr/bin/python3", "-c", READ_PAGE, self.socket],
                              capture_output=True, timeout=20, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @unittest.skipUnless(os.geteuid() == 0, "a second user needs root")
    def test_another_user_reads_nothing_of_a_job_in_the_page(self):
        self.start()
        program = self.folder / "secret-program-4711"
        program.symlink_to("/bin/sleep")
        output = self.folder / "secret-output-4711"
        words = ["aon-run", "-o", output, "--wait", "0", program, "2.25"]
        env = environment(AON_NODE_SOCKET=self.socket, SECRET="secret-variable-4711")
        with subprocess.Popen(words, env=env):
            wait_until(lambda: list(output.glob("spool/*/node.*")), what="what its agent reads")
            page = self.page_seen_by(NOBODY)
        self.assertIn(b"network", page)  # it is the page
        for secret in (b"4711", b"sleep", b"root"):
            self.assertNotIn(secret, page)

    @unittest.skipUnless(os.geteuid() == 0, "a /proc of its own needs root")
    def test_where_processes_are_hidden_it_tells_of_no_crashes(self):
        mount = "mount -t proc proc /proc -o hidepid="
        hide = f"{mount}invisible || {mount}2"
        words = ["unshare", "--mount", "sh", "-c", f'{hide}; exec "$@"', "sh"]
        process = self.start(before=words)
        page = self.page_seen_by(NOBODY)
        self.assertEqual(page[HAS_LOG : HAS_LOG + 4], bytes(4))
        process.terminate()
        self.assertIn("hides processes of other users", process.communicate(timeout=20)[1])

    def test_gives_up_root(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        service = self.start()
        wait_until(lambda: self.status(service)["NoNewPrivs"].strip() == "1", what="its new user")
        status = self.status(service)
        self.assertEqual(set(status["Uid"].split()), {str(NOBODY)})
        self.assertEqual(set(status["Gid"].split()), {str(NOBODY)})
        self.assertEqual(status["Groups"].strip(), "")
        for name in ("CapEff", "CapPrm", "CapBnd"):
            self.assertEqual(int(status[name], 16) & ~PERFMON_AND_SYSLOG, 0, name)

    def test_one_per_node(self):
        self.start()
        second = run([NODE, "--socket", self.socket])
        self.assertEqual(second.returncode, 3)
        self.assertIn("a service answers at", second.stderr)
        self.assert_exit(run([NODE, "--background", "--socket", self.socket]))

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_providers_that_its_user_may_not_read_are_left_out(self):
        prefix = copy_installation(self.folder / "closed" / "prefix")
        (self.folder / "closed").chmod(0o700)
        service = self.start("--provider-folder", prefix / "lib/aon/providers")
        providers = self.job(self.folder / "job")
        self.assertEqual(providers["network"]["state"], "on", "the agent reads for itself")
        service.terminate()
        _, said = service.communicate(timeout=20)
        self.assertEqual(service.returncode, 0)
        self.assertIn("Permission denied", said)

    def test_in_the_background(self):
        self.assert_exit(run([NODE, "--background", "--socket", self.socket]))
        (service,) = self.services()
        os.kill(int(service.name), signal.SIGTERM)

    def test_it_is_ended_by_its_user_only(self):
        end = [NODE, "--end", "--socket", self.socket]
        self.assert_exit(run(end), 0)  # none serves
        self.assert_exit(run([NODE, "--background", "--socket", self.socket]))
        if os.geteuid() == 0:
            nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            self.assertNotEqual(run([*nobody, *end]).returncode, 0)
        self.assertEqual(len(self.services()), 1)
        self.assert_exit(run(end))
        self.assertEqual(self.services(), [])
        self.assert_exit(run([NODE, "--background", "--socket", self.socket]))
        self.assert_exit(run(end))

    def services(self):
        return [p for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()
                and self.is_service(p)]

    def is_service(self, folder):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            return words[0].endswith(b"aon-node") and str(self.socket).encode() in words
        return False

    def test_an_impostor_is_not_used(self):
        self.start()
        self.socket.parent.chmod(0o777)
        providers = self.job(self.folder / "job")
        self.assertEqual(providers["network"]["state"], "on")
        self.assertIn("not used", (next(self.folder.glob("job/agent.*.log"))).read_text())


if __name__ == "__main__":
    main()
