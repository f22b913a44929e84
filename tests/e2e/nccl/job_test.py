"""A job that uses NCCL, from aon-run to profile.h5 and the OTF2 archive."""
import json
import math
import re
import unittest

import h5py
import xarray
from nccl_records import (
    FAKE,
    IN_FLIGHT,
    OVERWRITTEN,
    PLUGIN,
    TIMED,
    PluginTestCase,
    ledger,
    profile,
    readers,
    run,
)

from aon_test import PYTHON

RANKS = 2

READ_ARCHIVE = """
import collections, json, sys, otf2
told = collections.defaultdict(list)
with otf2.reader.open(sys.argv[1]) as trace:
    names = {c._ref: [m.name for m in c.group.members] for c in trace.definitions.comms}
    for location, event in trace.events:
        if location.name != "NCCL world":
            continue
        kind = type(event).__name__
        text = [location.group.name, kind]
        if kind == "Enter":
            values = {a.name: v for a, v in (event.attributes or {}).items()}
            told["attributes"].append([event.region.name, values])
        if kind.endswith("CollectiveEnd"):
            sent = event.bytes_sent if hasattr(event, "bytes_sent") else event.size_sent
            text += [str(event.collective_op).split(".")[-1], event.root, sent]
        if kind in ("RmaPut", "RmaGet"):
            text += [event.remote, event.bytes, event.win.name, names[event.win.comm._ref]]
        if kind in ("MpiSend", "MpiRecv"):
            peer = event.receiver if kind == "MpiSend" else event.sender
            text += [peer, event.msg_length, event.msg_tag, names[event.communicator._ref]]
        if kind == "RmaCollectiveEnd":
            text += [event.win.name]
        told["events"].append(text)
print(json.dumps(told))
"""


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
    def job(self, case, version=5, count=1, level="gpu", ranks=RANKS, options=()):
        output = self.folder / f"job{len(list(self.folder.iterdir()))}"
        command = ("env", f"AON_NCCL_LEVEL={level}", FAKE, case, version, count)
        self.assert_exit(profile(ranks, output, *command, options=options))
        return output

    def archive(self, output):
        """What the archive has on the timelines of NCCL, read by somebody else's reader."""
        done = run([PYTHON, "-c", READ_ARCHIVE, output / "traces.otf2"])
        self.assert_exit(done)
        return json.loads(done.stdout)

    def tables(self, output):
        with h5py.File(output / "profile.h5") as file:
            regions = table(file, "regions")["name"]
            return regions, *(
                rows(table(file, f"nccl/{name}"))
                for name in ("communicators", "operations", "histograms")
            )

    def test_ranks_share_a_communicator(self):
        output = self.job("allreduce", 5, 3)
        _, communicators, operations, _ = self.tables(output)
        with h5py.File(output / "profile.h5") as file:
            attributes = dict(file["nccl/operations"].attrs)
        self.assertEqual((attributes["kept_one_in"], attributes["operations_left_out"]), (1, 0))
        (world,) = communicators
        self.assertEqual((world["name"], world["size"], world["operations"]), ("world", 2, 6))
        self.assertEqual(world["bytes"], 6 * 4 << 20)
        self.assertEqual((world["comm_id"], world["nodes"]), ("0xfeedc0de12345678", 1))
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

    def test_times_that_nccl_has_overwritten_are_not_told(self):
        output = self.job("late_proxy", 5, 200, ranks=1, options=("--budget", "100"))
        _, _, operations, (histogram,) = self.tables(output)
        # Two threads commit them.
        self.assertEqual(sorted(o["call"] for o in operations), list(range(200)))
        for row in operations:
            is_kept = row["call"] >= 200 - 64
            self.assertEqual(row["flags"], TIMED if is_kept else OVERWRITTEN, row)
            self.assertEqual(math.isnan(row["gpu_ns"]), not is_kept)
        self.assertEqual((histogram["count"], histogram["timed_count"]), (200, 64))
        self.assertIn("136 operations have no times on the GPU: NCCL had overwritten them",
                      (output / "aon.json").read_text())  # fmt: skip

    def test_so_it_is_of_each_communicator_of_a_group(self):
        """NCCL begins a group with the communicator of its first call alone."""
        output = self.job("late_proxies", 5, 200, ranks=1, options=("--budget", "100"))
        _, communicators, operations, _ = self.tables(output)
        self.assertEqual(len(communicators), 2)
        for number in range(2):
            flags = {o["call"]: o["flags"] for o in operations if o["communicator"] == number}
            self.assertEqual([flags[call] for call in sorted(flags)],
                             [OVERWRITTEN] * 136 + [TIMED] * 64)

    def test_histograms_have_what_found_no_room_in_the_ring(self):
        for level in ("api", "gpu"):
            self.fill_ring(level, 20000)

    def fill_ring(self, level, count):
        output = self.folder / f"small-{level}"
        output.mkdir()
        self.assert_exit(self.rings("env", f"AON_OUTPUT={output}", FAKE, "allreduce", 7, count,
                                    NCCL_PROFILER_PLUGIN=PLUGIN, AON_NCCL_LEVEL=level,
                                    AON_MEMORY="1M")[0])  # fmt: skip
        self.assert_exit(run(["aon", "finalize", "--quiet", output]))
        _, communicators, operations, histograms = self.tables(output)
        self.assertLess(len(operations), count)
        self.assertEqual([h["count"] for h in histograms], [count])
        self.assertEqual([c["operations"] for c in communicators], [count])
        self.assertEqual([o for o in operations if o["flags"] & IN_FLIGHT], [])
        with h5py.File(output / "profile.h5") as file:
            self.assertEqual(file["nccl/histograms"].attrs["operations_missing"], 0)

    def test_at_any_rate_each_operation_is_told_or_counted(self):
        """Without a pause between them: many times the 5000 a second that AON is made for."""
        count = 50000
        for level in ("api", "gpu"):
            output = self.job("allreduce", 7, count, level, 1, ("--memory", "1M"))
            _, _, operations, histograms = self.tables(output)
            with h5py.File(output / "profile.h5") as file:
                missing = int(file["nccl/histograms"].attrs["operations_missing"])
            self.assertEqual(sum(h["count"] for h in histograms) + missing, count)
            self.assertLess(0, len(operations))
            self.assert_law(ledger(output))

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

    def test_operations_are_collectives_and_transfers_of_their_communicator(self):
        for level in ("gpu", "api"):
            output = self.job("every", level=level)
            told = self.archive(output)
            mine = [e for e in told["events"] if e[0] == "NCCL of Rank 0"]
            ends = [e[2:] for e in mine if e[1] == "RmaCollectiveEnd"]
            none = 0xFFFFFFFF
            both = 2 * 4096  # every pair of members, with itself
            self.assertEqual(ends, [["ALLREDUCE", none, both, "NCCL world"],
                                    ["ALLGATHER", none, both, "NCCL world"],
                                    ["REDUCE_SCATTER_BLOCK", none, both, "NCCL world"],
                                    ["BCAST", 1, 0, "NCCL world"],
                                    ["REDUCE", 1, 4096, "NCCL world"]])
            members = ["NCCL world"] * 2
            self.assertIn(["NCCL of Rank 0", "RmaPut", 1, 4096, "NCCL world", members], mine)
            self.assertIn(["NCCL of Rank 0", "RmaGet", 1, 4096, "NCCL world", members], mine)
            done = sum(e[1] == "RmaOpCompleteBlocking" for e in mine)
            self.assertEqual((done, sum(e[1] == "Enter" for e in mine)), (2, 7))
            for name, values in told["attributes"]:
                timed = level == "gpu"
                self.assertEqual((values["value"], values["nccl.gpu_timed"]), (4096, int(timed)))
                self.assertEqual("nccl.busbw" in values, timed)
                if name == "ncclAllReduce":
                    words = [values[f"nccl.{key}"] for key in ("algo", "proto", "dtype", "seq")]
                    self.assertEqual(words, ["ring", "simple", "float32", 0])
            readers.otf2_print(self, output)
            readers.otf2_structure(self, output)

    def test_for_tools_that_only_know_mpi_they_are_mpis(self):
        output = self.job("every", options=("--nccl-as-mpi",))
        told = self.archive(output)
        kinds = [e[1] for e in told["events"]]
        self.assertEqual((kinds.count("MpiCollectiveEnd"), kinds.count("MpiSend")), (10, 2))
        self.assertFalse([kind for kind in kinds if kind.startswith("Rma")])
        members = ["NCCL world"] * 2
        self.assertIn(["NCCL of Rank 1", "MpiRecv", 0, 4096, 0, members], told["events"])
        readers.otf2_print(self, output)
        self.assertEqual(readers.otf2_messages(self, output), RANKS)
        # It is how the archive is written, not what was recorded.
        self.assert_exit(run(["aon", "finalize", output]))
        self.assertIn("RmaPut", [e[1] for e in self.archive(output)["events"]])
        self.assert_exit(run(["aon", "finalize", "--nccl-as-mpi", output]))
        self.assertIn("MpiSend", [e[1] for e in self.archive(output)["events"]])

    def test_viewers_draw_it(self):
        readers.vite(self, self.job("train", 5, 3), RANKS, 0, "Rank")
        # It draws no message between timelines of one process and another's.
        as_mpi = self.job("train", 5, 3, options=("--nccl-as-mpi",))
        readers.vite(self, as_mpi, RANKS, 0, "Rank")

    def test_of_many_communicators_each_timeline_defines_its_own(self):
        output = self.job("many", 5, 300)
        _, communicators, operations, _ = self.tables(output)
        self.assertEqual((len(communicators), len(operations)), (300, 300 * RANKS))
        sizes = [path.stat().st_size for path in (output / "traces").glob("*.def")]
        self.assertGreaterEqual(len(sizes), 300 * RANKS)
        self.assertLess(sum(sizes) / len(sizes), 500)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)

    def test_what_sends_wait_for_is_told(self):
        # Long beside the start of its programs: waits are told by their part of the job.
        output = self.job("train", 5, 400, level="step", options=("--budget", "100"))
        self.assertRegex("\n".join(ledger(output)["findings"]),
                         r"sends of NCCL's proxies wait for the network: \d\d % of what their ")

    def test_what_the_proxies_did_is_a_table(self):
        output = self.job("proxy", 5, 2, level="step")
        with h5py.File(output / "profile.h5") as file:
            told = rows(table(file, "nccl/proxy"))
        self.assertEqual(sorted((r["rank"], r["peer"], r["is_send"]) for r in told),
                         [(rank, 1 - rank, send) for rank in range(2) for send in range(2)])
        for row in told:
            # Two operations on two channels in four steps.
            self.assertEqual((row["count"], row["steps"], row["planned_steps"]), (4, 16, 16))
            self.assertEqual((row["bytes"], row["network_events"]), (16 * 4096, 16))
            self.assertGreater(row["network_wait_ns"], 16 * 1_000_000)
        self.assert_law(ledger(output))
        readers.hdf5(self, output)

    def test_the_budget_lowers_the_level_while_the_program_runs(self):
        output = self.job("busy", 5, 6000, level="step", ranks=1, options=("--budget", "0.01"))
        document = ledger(output)
        changes = document["budget"]["nccl_level_changes"]
        steps = [(c["from"], c["to"], c["rank"]) for c in changes]
        self.assertEqual(steps[:3], [("step", "net", 0), ("net", "gpu", 0), ("gpu", "api", 0)])
        self.assertGreaterEqual(document["budget"]["mode_changes"], 3)
        told = document["ranks"][0]["providers"]["nccl"]
        self.assertEqual(
            (told["state"], told["reason"], told["remedy"]),
            ("degraded", "the budget lowered the level from step to api, for a time or to the end",
             "a larger --budget or a lower --nccl-level"))  # fmt: skip
        with h5py.File(output / "profile.h5") as file:
            told = sorted(rows(table(file, "nccl/operations")), key=lambda row: row["call"])
        self.assertEqual(len(told), 6000)
        self.assertEqual(told[0]["flags"], TIMED)
        self.assertEqual(told[-1]["flags"], 0)  # nobody waits for channels that do not come
        self.assert_law(document)

    def test_the_budget_leaves_the_channels_to_an_nccl_that_needs_them(self):
        output = self.job("busy", 7, 5000, level="step", ranks=1, options=("--budget", "0.01"))
        changes = ledger(output)["budget"]["nccl_level_changes"]
        self.assertEqual([(c["from"], c["to"]) for c in changes], [("step", "net"), ("net", "gpu")])
        with h5py.File(output / "profile.h5") as file:
            told = rows(table(file, "nccl/operations"))
        self.assertEqual({row["flags"] for row in told}, {TIMED})

    def test_host_calls_are_regions_of_the_accelerators_paradigm(self):
        output = self.job("every", level="api")
        counts = readers.region_counts(output)
        # Their timeline in the archive shows them again; the profile has each once.
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
