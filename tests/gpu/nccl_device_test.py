"""The plugin under the real NCCL on a real GPU: a rank that sends to itself; two ranks on one GPU,
each with a host of its own for NCCL. Skipped (77) without a GPU, libnccl.so.2 or mpirun."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import h5py
from device import BUILD, nccl_problem, nccl_words, need, skip_without_device

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import readers  # noqa: E402
from aon_test import (  # noqa: E402
    PYTHON, SKIPPED, TestCase, environment, ledger, main, run, wait_until,
)  # fmt: skip

CAPTURED, TIMED, REPLAYED, KERNEL_TIMED = 1 << 0, 1 << 1, 1 << 4, 1 << 8
LATE_NS = 50_000_000


def no_otf2():
    """Why the archive cannot be read on this machine; empty where it can."""
    if shutil.which("otf2-print") is None:
        return "no otf2-print (package otf2-tools)"
    if run([PYTHON, "-c", "import h5py, otf2"]).returncode != 0:
        return f"{PYTHON} has no h5py or no otf2"
    return ""


def words(ranks, output, case, count, *options):
    aon = [BUILD / "bin" / "aon-run", "-o", output, *options, "--"]
    return nccl_words(ranks, output.parent, case, count, aon)


class Device(TestCase):
    def job(self, ranks, case, count, level="gpu", options=()):
        output = self.folder / f"{case}-{level}"
        done = run(words(ranks, output, case, count, "--nccl-level", level, *options),
                   timeout_s=200)  # fmt: skip
        self.assert_exit(done)
        self.assertEqual(done.stdout.count(f"done {case}"), ranks, done.stdout)
        self.assert_exit(run(["aon", "finalize", "--quiet", output]))
        self.assert_law(ledger(output))
        for rank in ledger(output)["ranks"]:
            self.assertNotEqual(rank["providers"]["nccl"]["state"], "off", rank["providers"])
        return output

    def rows(self, output, name):
        with h5py.File(output / "profile.h5") as file:
            regions = [n.decode() for n in file["regions/name"][()]]
            group = file[f"nccl/{name}"]
            columns = {c: group[c][()].tolist() for c in group if c != "row"
                       and isinstance(group[c], h5py.Dataset)}  # fmt: skip
        told = [dict(zip(columns, values)) for values in zip(*columns.values())]
        for row in told:
            row["function"] = regions[row["region"]] if "region" in row else ""
        return told

    def test_what_a_rank_sends_to_itself_is_told(self):
        output = self.job(1, "self", 5)
        told = sorted((r["function"], r["sequence"]) for r in self.rows(output, "operations"))
        self.assertEqual(told, [(n, k) for n in ("ncclRecv", "ncclSend") for k in range(5)])

    def test_a_sweep_has_times_and_bandwidths(self):
        output = self.job(2, "sweep", 20)
        told = self.rows(output, "operations")
        self.assertEqual(len(told), 2 * 6 * 20)
        self.assertEqual({r["bytes"] for r in told}, {1 << power for power in range(17, 23)})
        timed = [r for r in told if r["flags"] & TIMED]
        self.assertGreater(len(timed), 0.9 * len(told))
        for row in timed:
            self.assertGreater(row["busbw"], 0)
            self.assertLess(row["gpu_ns"], 1_000_000_000)
            # The call of the first one lasts seconds, in which NCCL connects; its launch does not.
            self.assertLess(abs(row["gpu_begin_ns"] - row["launch_ns"]), 1_000_000_000)
        # Nobody was late: the hundreds of ms that one was longer connecting are not its fault.
        late = self.rows(output, "lateness")
        self.assertEqual({row["rank"] for row in late}, {0, 1})
        for row in late:
            # Without first ones and those without times.
            self.assertGreater(row["count"], 0.7 * len(told) / 2)
            self.assertLess(row["max_caused_ns"], 100_000_000)

    def test_at_level_api_operations_have_the_times_of_their_kernels(self):
        output = self.job(2, "sweep", 20, "api", ("--budget", "100"))
        need("cupti", ledger(output)["ranks"][0]["providers"]["cupti"])
        told = self.rows(output, "operations")
        self.assertEqual(len(told), 2 * 6 * 20)
        timed = [r for r in told if r["flags"] & KERNEL_TIMED]
        self.assertGreater(len(timed), 0.8 * len(told))
        for row in timed:
            self.assertFalse(row["flags"] & TIMED)
            self.assertGreater(row["busbw"], 0)
            self.assertLess(row["gpu_ns"], 1_000_000_000)

    def test_readers_find_nothing_wrong_with_the_archive(self):
        if why := no_otf2():
            self.skipTest(why)
        output = self.job(2, "sweep", 3)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)

    def test_the_proxies_of_sockets_are_told(self):
        told = self.rows(self.job(2, "sweep", 3, "step"), "proxy")
        self.assertEqual({(r["rank"], r["peer"]) for r in told}, {(0, 1), (1, 0)})
        self.assertGreater(sum(r["bytes"] for r in told), 0)

    def test_a_straggler_is_named(self):
        output = self.job(2, "straggler", 10)
        (late,) = [r for r in self.rows(output, "lateness") if r["last_count"] > 5]
        self.assertEqual(late["rank"], 1)
        # Of the first one nobody is told late where connecting takes one of them longer.
        self.assertGreaterEqual(late["last_count"], 9)
        self.assertAlmostEqual(late["caused_ns"] / (late["last_count"] * LATE_NS), 1, delta=0.3)
        self.assertRegex("\n".join(ledger(output)["findings"]), "rank 1 on .* came last to")

    def test_graphs_are_told_each_time_they_run(self):
        output = self.job(2, "graph", 5)
        flags = [r["flags"] for r in self.rows(output, "operations") if r["rank"] == 0]
        self.assertEqual(sum(bool(f & CAPTURED) for f in flags), 1)
        self.assertEqual(sum(bool(f & REPLAYED) for f in flags), 5)

    def test_a_skipped_operation_is_a_hang_of_the_rank_that_did_not_come(self):
        output = self.folder / "skip"
        command = words(2, output, "skip", 4, "--nccl-level", "gpu", "--hang", "2")
        job = subprocess.Popen([str(w) for w in command], env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)  # fmt: skip
        try:
            text = wait_until(lambda: self.hanging(output), 90, "a hang")
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        self.assertIn("rank 1 on", re.search(r".*did not arrive.*", text).group())

    def hanging(self, output):
        done = run(["aon", "hang", "--ras", "off", output])
        return "did not arrive" in done.stdout and done.stdout


if __name__ == "__main__":
    skip_without_device()
    if why := nccl_problem():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    main()
