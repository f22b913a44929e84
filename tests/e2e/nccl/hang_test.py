"""Operations of NCCL that do not end: `aon hang` names who did not come while the job runs, with
the stacks of the host, and the ledger does when it was killed."""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import h5py
from job_test import rows, table
from nccl_records import BUILD, FAKE, PluginTestCase, ledger, run

from aon_test import environment, wait_until

RANKS = 3
FAKE_CUDA = BUILD / "lib" / "fake_cuda"


class Hang(PluginTestCase):
    def start(self, fault, level="gpu", hang=1, **faults):
        self.output = self.folder / "job"
        words = ["mpirun", "--oversubscribe", "-n", RANKS, "-x", "FAKE_NCCL_HANG",
                 *(word for name in faults for word in ("-x", name)),
                 BUILD / "bin" / "aon-run", "-o", self.output, "--hang", hang,
                 "--nccl-level", level, "--", FAKE, "train", 7, 3]  # fmt: skip
        job = subprocess.Popen(
            [str(word) for word in words], env=environment(FAKE_NCCL_HANG=fault, **faults),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.addCleanup(self.end, job)
        return job

    @staticmethod
    def end(job):
        """By SIGTERM, upon which mpirun ends its ranks: they have process groups of their own."""
        if job.poll() is None:
            job.terminate()
        try:
            job.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()

    def hanging(self, *wanted, within_s=60):
        """The text of `aon hang`, once all of `wanted` is in it."""
        seen = [""]

        def look():
            done = run([BUILD / "bin" / "aon", "hang", self.output])
            seen[0] = done.stdout
            return all(words in done.stdout for words in wanted) and done.stdout

        try:
            return wait_until(look, within_s, "a hang")
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[0]}") from None

    def test_who_skipped_an_operation_is_named_with_where_it_stands(self):
        job = self.start("1:1:skip")
        text = self.hanging("rank 1 on", "in it: 0, 2", "    0, 2 stand in", "compute_for_ever")
        self.assertRegex(text, r"ncclAllReduce 2 of world \(3 members, 4 194 304 bytes\) does not "
                               r"end, for \d+ s\n  in it: 0, 2\n")  # fmt: skip
        self.assertRegex(text, r"\n    0, 2 stand in .*wait_for_the_gpu_for_ever.* < main")
        self.assertRegex(text, r"\n  rank 1 on \S+ \(pid \d+\) did not arrive: .*\n"
                               r"    1 stands in .*compute_for_ever.* < main")  # fmt: skip
        # Looking does not change what the ranks do.
        self.assertIsNone(job.poll())
        os.kill(job.pid, signal.SIGTERM)
        self.assertNotEqual(job.wait(90), 0)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        named = (r"^ncclAllReduce 2 of world never ended: ranks 0, 2 are in it, "
                 r"rank 1 on \S+ \(pid \d+\) did not arrive$")  # fmt: skip
        self.assertRegex(document["findings"][0], named)
        self.assertIn("compute_for_ever", "\n".join(document["hangs"]))
        with h5py.File(self.output / "profile.h5") as file:
            bit = list(file["nccl/operations"].attrs["flags"]).index("in flight")
            kept = [r for r in rows(table(file, "nccl/operations")) if r["flags"] >> bit & 1]
        self.assertEqual(sorted((r["rank"], r["sequence"]) for r in kept), [(0, 1), (2, 1)])

    def hang_beside_cupti(self, level):
        """It tells what each of our flushes took, and one comes twice a second: no sign of life."""
        self.start("1:1:skip", level=level, FAKE_NCCL_CUDA=1, LD_LIBRARY_PATH=FAKE_CUDA,
                   AON_BUDGET=100)  # fmt: skip
        self.hanging("ncclAllReduce 2 of world", "rank 1 on", within_s=20)

    def test_beside_cupti_it_is_seen_as_soon(self):
        self.hang_beside_cupti("gpu")

    def test_beside_cupti_it_is_seen_at_level_api(self):
        self.hang_beside_cupti("api")

    def test_of_a_damaged_spool_nobody_else_is_accused(self):
        for level in ("gpu", "api"):
            job = self.start("1:1:skip", level=level)
            self.hanging("rank 1 on")
            os.kill(job.pid, signal.SIGTERM)
            job.wait(90)
            wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
            files = {path: path.read_bytes() for path in (self.output / "spool").rglob("*.aon")}
            self.assertGreaterEqual(len(files), RANKS)
            for damage in range(30):
                self.damage(files, random.Random(damage))
                done = run([BUILD / "bin" / "aon", "hang", self.output])
                self.assertIn(done.returncode, (0, 1), f"{damage}: {done.stderr}")
                self.assertLess(len(done.stdout), 20000)
                accused = re.findall(r"rank (\d) on \S+ \(pid \d+\) did not", done.stdout)
                self.assertLessEqual(set(accused), {"1"}, f"{level} {damage}: {done.stdout}")
            shutil.rmtree(self.output)

    @staticmethod
    def damage(files, dice):
        """Cuts a file, or flips bits of one or of all, of what they were."""
        chosen = dice.choice(sorted(files))
        is_cut = dice.random() < 0.3
        for path, content in files.items():
            damaged = bytearray(content)
            if is_cut and path == chosen:
                del damaged[dice.randrange(len(damaged) + 1) :]
            elif path == chosen or (not is_cut and dice.random() < 0.3):
                for _ in range(dice.randrange(1, 4)):
                    damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
            path.write_bytes(damaged)

    def assert_disagreement(self, fault, other):
        """NCCL waits for ever, and all have enqueued as many operations of each function."""
        job = self.start(f"1:1:{fault}", level="api")
        text = self.hanging("its members called it differently, one of them is wrong")
        self.assertRegex(text, r"(?m)^  ncclAllReduce of 4 194 304 bytes of type float32: 0, 2$")
        self.assertRegex(text, rf"(?m)^  {other} bytes of type float32: 1$")
        os.kill(job.pid, signal.SIGTERM)
        job.wait(90)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        named = ("is not the same everywhere: rank 0, 2 called ncclAllReduce of 4 194 304 bytes "
                 f"of type float32, rank 1 called {other} bytes")  # fmt: skip
        self.assertRegex(document["findings"][0], named)

    def test_operations_in_another_order_are_told_without_times_on_the_gpu(self):
        self.assert_disagreement("order", "ncclAllGather of [0-9 ]+")

    def test_bytes_that_differ_are_told_without_times_on_the_gpu(self):
        self.assert_disagreement("bytes", "ncclAllReduce of 2 097 152")

    def test_a_watchdogs_abort_still_tells_who_did_not_arrive(self):
        # Nobody is quiet for --hang seconds, and nothing is a minute old.
        job = self.start("1:1:skip", hang=30, FAKE_NCCL_WATCHDOG="1500")
        self.assertNotEqual(job.wait(90), 0)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        self.assertRegex("\n".join(document["findings"]), r"ncclAllReduce 2 of world never ended: "
                         r"ranks? (0, 2|0|2) (is|are) in it, .*rank 1 on")  # fmt: skip
        with h5py.File(self.output / "profile.h5") as file:
            flags = list(file["nccl/operations"].attrs["flags"])
            wanted = 1 << flags.index("abandoned") | 1 << flags.index("in flight")
            told = rows(table(file, "nccl/operations"))
        kept = [r for r in told if r["flags"] & wanted == wanted]
        self.assertTrue({(r["rank"], r["sequence"]) for r in kept} & {(0, 1), (2, 1)})

    def test_nccls_own_service_is_asked(self):
        self.start("1:1:skip")
        self.hanging("rank 1 on")
        with socket.create_server(("127.0.0.1", 0)) as server:
            asked = []

            def serve():
                for _ in range(2):
                    client, _ = server.accept()
                    with client:
                        asked.append(client.recv(64))
                        client.sendall(b"Job summary\n  rank 1 missing\n")

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            address = "127.0.0.1:%d" % server.getsockname()[1]
            command = [BUILD / "bin" / "aon", "hang", self.output]
            done = run(command, env=environment(NCCL_RAS_ADDR=address))
            more = run([*command, "--ras", address])
            thread.join(30)
        for process in (done, more):
            self.assert_exit(process)
            self.assertIn(f"NCCL's RAS service at {address} says (of whatever job", process.stdout)
            self.assertNotIn("(cut off)", process.stdout)
            self.assertIn("\n    rank 1 missing\n", process.stdout)
        self.assertEqual(asked, [b"verbose status\n"] * 2)
        gone = run([*command, "--ras", address])
        self.assertIn(f"NCCL's RAS service at {address} does not answer", gone.stdout)
        wrong = run([*command, "--ras", "foo"])
        self.assert_exit(wrong, 2)
        self.assertIn("--ras: 'foo' is no address like localhost:28028", wrong.stderr)
        quiet = run([*command, "--ras", "off"], env=environment(NCCL_RAS_ADDR=address))
        self.assertNotIn("RAS", quiet.stdout)

    def test_a_wrong_operation_is_named(self):
        self.start("2:0:other")
        wrong = "is in ncclAllGather 1 of 4 194 304 bytes instead: one of them is wrong"
        self.hanging("ncclAllReduce 1 of world", "in it: 0-1", "rank 2 on", wrong)

    def test_without_times_on_the_gpu_a_wrong_operation_is_named(self):
        self.start("2:0:other", level="api")
        wrong = "has enqueued ncclAllGather 1 of 4 194 304 bytes instead: one of them is wrong"
        text = self.hanging("ncclAllReduce 1 of world", "have enqueued it: 0-1", "rank 2 on", wrong)
        self.assertNotIn("rank 0 on", text)
        self.assertNotIn("did not arrive", text)

    def test_without_times_on_the_gpu_the_pair_of_a_transfer_is_named(self):
        job = self.start("1:1:lone", level="api")
        text = self.hanging("ncclRecv 2 of world from rank 1 of it",
                            "ncclSend 2 of world to rank 1 of it", "compute_for_ever")  # fmt: skip
        self.assertRegex(text, r"ncclRecv 2 of .*\n  have enqueued it: 2\n.*\n"
                               r"  rank 1 on \S+ \(pid \d+\) has not enqueued ncclSend to it")
        self.assertRegex(text, r"ncclSend 2 of .*\n  have enqueued it: 0\n.*\n"
                               r"  rank 1 on \S+ \(pid \d+\) has not enqueued ncclRecv from it")
        os.kill(job.pid, signal.SIGTERM)
        job.wait(90)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        named = (r"^rank 2 is quiet behind ncclRecv 2 of world from rank 1 of it, "
                 r"rank 1 on \S+ \(pid \d+\) has not enqueued ncclSend to it$")  # fmt: skip
        self.assertRegex(ledger(self.output)["findings"][0], named)

    def test_without_times_on_the_gpu_all_who_are_quiet_are_told(self):
        job = self.start("1:1:all", level="api")
        text = self.hanging("ranks 0-2 are quiet behind ncclAllReduce 2 of world, for ",
                            "; all have enqueued it", "    0-2 stand in")  # fmt: skip
        self.assertRegex(text, r"\n    0-2 stand in .*wait_for_the_gpu_for_ever.* < main")
        self.assertNotIn("did not", text)
        os.kill(job.pid, signal.SIGTERM)
        job.wait(90)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        named = (r"^ranks 0-2 are quiet behind ncclAllReduce 2 of world, for \d+ s; "
                 r"all have enqueued it$")  # fmt: skip
        self.assertRegex(document["findings"][0], named)

    def test_without_times_on_the_gpu_it_is_told_who_is_behind(self):
        self.start("0:2:skip", level="api")
        text = self.hanging("ncclAllReduce 3 of world: some have not come to it",
                            "have enqueued it: 1-2", "rank 0 on", "compute_for_ever")  # fmt: skip
        self.assertIn("at level api NCCL does not tell what has ended", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
