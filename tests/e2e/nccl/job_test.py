"""A job that uses NCCL, from aon-run to profile.h5 and the OTF2 archive."""
import math
import re
import unittest

import h5py
import xarray
from nccl_records import FAKE, TIMED, PluginTestCase, ledger, profile, readers, run

RANKS = 2


def table(file, name):
    """{column: values} of a table; texts as str."""
    group = file[name]
    columns = {}
    for column in group:
        data = group[column]
        if column == "row" or not isinstance(data, h5py.Dataset):
            continue
        values = data[()].tolist()
        columns[column] = [v.decode() if isinstance(v, bytes) else v for v in values]
    return columns


def rows(columns):
    names = list(columns)
    return [dict(zip(names, values)) for values in zip(*columns.values())]


class Job(PluginTestCase):
    def job(self, case, version=5, count=1, level="gpu", ranks=RANKS):
        output = self.folder / f"job{len(list(self.folder.iterdir()))}"
        command = ("env", f"AON_NCCL_LEVEL={level}", FAKE, case, version, count)
        self.assert_exit(profile(ranks, output, *command))
        return output

    def tables(self, output):
        with h5py.File(output / "profile.h5") as file:
            regions = table(file, "regions")["name"]
            return regions, *(
                rows(table(file, f"nccl/{name}"))
                for name in ("communicators", "operations", "histograms")
            )

    def test_ranks_share_a_communicator(self):
        _, communicators, operations, _ = self.tables(self.job("allreduce", 5, 3))
        (world,) = communicators
        self.assertEqual((world["name"], world["size"], world["operations"]), ("world", 2, 6))
        self.assertEqual(world["bytes"], 6 * 4 << 20)
        self.assertEqual(sorted(o["rank"] for o in operations), [0] * 3 + [1] * 3)
        self.assertEqual({o["communicator"] for o in operations}, {0})
        for rank in range(RANKS):
            told = [o["sequence"] for o in operations if o["rank"] == rank]
            self.assertEqual(told, [0, 1, 2])

    def test_bandwidths_are_those_of_nccl_tests(self):
        regions, _, operations, histograms = self.tables(self.job("every"))
        factors = {"ncclAllReduce": (1, 1), "ncclAllGather": (2, 0.5),
                   "ncclReduceScatter": (2, 0.5), "ncclBroadcast": (1, 1), "ncclReduce": (1, 1),
                   "ncclSend": (1, 1), "ncclRecv": (1, 1)}  # fmt: skip
        self.assertEqual(len(operations), RANKS * len(factors))
        for row in operations:
            size, bus = factors[regions[row["region"]]]
            self.assertEqual((row["bytes"], row["flags"]), (4096, TIMED))
            self.assertAlmostEqual(row["algbw"], size * 4096 / row["gpu_ns"])
            self.assertAlmostEqual(row["busbw"], row["algbw"] * bus)
            self.assertLess(row["start_ns"], row["gpu_begin_ns"] + row["gpu_ns"])
        self.assertEqual({regions[h["region"]] for h in histograms}, set(factors))
        for row in histograms:
            self.assertEqual((row["log2_bytes"], row["count"], row["timed_count"]), (12, 2, 2))
            self.assertEqual(sum(row["histogram"]), 2)
            self.assertLessEqual(row["min_ns"] + row["max_ns"], row["gpu_ns"] + 1)

    def test_without_gpu_times_there_is_no_bandwidth(self):
        _, _, operations, histograms = self.tables(self.job("allreduce", 7, 2, level="api"))
        for row in operations:
            self.assertTrue(math.isnan(row["busbw"]) and math.isnan(row["gpu_ns"]))
            self.assertGreater(row["launch_ns"], row["start_ns"])
        self.assertEqual([h["count"] for h in histograms], [4])
        self.assertTrue(math.isnan(histograms[0]["busbw"]))

    def test_old_versions_do_not_join_ranks(self):
        _, communicators, operations, _ = self.tables(self.job("allreduce", 3, 2, level="api"))
        self.assertEqual([c["size"] for c in communicators], [0, 0])
        self.assertEqual(len(operations), 4)

    def test_everybody_reads_it(self):
        output = self.job("every")
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        self.assertEqual(readers.otf2_messages(self, output), 0)
        readers.hdf5(self, output)
        for name, count in (("communicators", 1), ("operations", 14), ("histograms", 7)):
            with xarray.open_dataset(output / "profile.h5", group=f"nccl/{name}") as data:
                self.assertEqual(data.sizes["row"], count)
        document = ledger(output)
        self.assert_law(document)
        for rank in document["ranks"]:
            told = rank["providers"]["nccl"]
            self.assertEqual((told["state"], told["lost"]), ("on", 0))
            # Operations, calls and launches; operations that were in flight for a moment.
            self.assertIn(told["emitted"] - (7 + 2 * (7 + 6)), range(8))

    def test_times_on_the_gpu_are_a_timeline_of_their_communicator(self):
        output = self.job("allreduce", 5, 3)
        counts = readers.region_counts(output)
        self.assertEqual(counts["ncclAllReduce"], 2 * 3 * RANKS)  # and the calls of the host
        done = run(["otf2-print", "-Werror", "-G", output / "traces.otf2"])
        self.assert_exit(done)
        named = re.findall(r'^LOCATION .*Name: "NCCL world".*', done.stdout, re.MULTILINE)
        self.assertEqual(len(named), RANKS)
        readers.otf2_structure(self, output)

    def test_host_calls_are_regions_of_the_accelerators_paradigm(self):
        output = self.job("every", level="api")
        counts = readers.region_counts(output)
        self.assertEqual((counts["ncclAllReduce"], counts["ncclGroupEnd"]), (2, 12))
        done = run(["otf2-print", "-G", output / "traces.otf2"])
        said = r'^REGION .*Name: "ncclAllReduce".*'
        (line,) = re.findall(said, done.stdout, re.MULTILINE)
        self.assertIn("CUDA", line)
        self.assertIn("COLL_ALL2ALL", line)

    def test_a_job_without_nccl_has_no_such_tables(self):
        output = self.folder / "job"
        self.assert_exit(profile(1, output, "/bin/true"))
        if (output / "profile.h5").exists():
            with h5py.File(output / "profile.h5") as file:
                self.assertNotIn("nccl", file)

    def test_little_memory_loses_nothing_silently(self):
        output = self.folder / "small"
        done = profile(1, output, "env", "AON_NCCL_LEVEL=api", FAKE, "allreduce", 7, 200000,
                       options=("--memory", "1M"))  # fmt: skip
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        (rank,) = document["ranks"]
        # Per operation: its record, its call's and its launch's regions.
        self.assertEqual(rank["emitted"], 5 * 200000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
