"""Who comes late to operations of NCCL, and which link is slow: named in the tables of profile.h5
and in the summary."""
import collections
import unittest

import h5py
from job_test import rows, table
from nccl_records import BUILD, FAKE, PluginTestCase, ledger, profile, readers

RANKS = 4
DRIVER = BUILD / "lib" / "fake_cuda" / "libcuda.so.1"
DEVICE = 'FAKE_CUDA_DEVICE=$OMPI_COMM_WORLD_RANK exec "$@"'
NS_PER_MS = 1_000_000


class Lateness(PluginTestCase):
    def job(self, steps=4, level="gpu", **faults):
        output = self.folder / f"job{len(list(self.folder.iterdir()))}"
        variables = [f"{name}={value}" for name, value in faults.items()]
        words = ("env", f"AON_NCCL_LEVEL={level}", f"LD_PRELOAD={DRIVER}", *variables,
                 "sh", "-c", DEVICE, "sh", FAKE, "train", 7, steps)  # fmt: skip
        done = profile(RANKS, output, *words)
        self.assert_exit(done)
        self.assert_law(ledger(output))
        self.output = output
        with h5py.File(output / "profile.h5") as file:
            regions = table(file, "regions")["name"]
            tables = {}
            for name in ("lateness", "true_times", "links"):
                tables[name] = rows(table(file, f"nccl/{name}"))
                for row in tables[name]:
                    row["function"] = regions[row["region"]] if "region" in row else ""
            attributes = dict(file["nccl/lateness"].attrs)
        return tables, attributes, "\n".join(ledger(output)["findings"])

    def assert_late(self, tables, rank, cause, steps):
        late = {r["rank"]: r for r in tables["lateness"] if r["function"] == "ncclAllReduce"}
        self.assertEqual(sorted(late), list(range(RANKS)))
        self.assertEqual({r: late[r]["last_count"] for r in late},
                         {r: steps if r == rank else 0 for r in late})
        self.assertEqual({r["count"] for r in late.values()}, {steps})
        self.assertEqual({r: late[r]["device"] for r in late}, {r: r for r in late})
        caused_ns = late[rank]["caused_ns"]
        self.assertEqual(caused_ns, sum(r["wait_ns"] for r in late.values()))
        self.assertAlmostEqual(caused_ns / (steps * (RANKS - 1) * 20 * NS_PER_MS), 1, places=1)
        self.assertEqual(late[rank]["host_late_ns"] + late[rank]["gpu_late_ns"], caused_ns)
        self.assertGreater(late[rank][cause], caused_ns * 0.8)

    def assert_archive_has_the_waits(self, table_rows):
        """What each rank waited in all, but for what was less than 1 us."""
        operations = sum(row["count"] for row in table_rows)
        archive_s, table_s = readers.nccl_waits(self, self.output), collections.Counter()
        for row in table_rows:
            table_s[f"Rank {row['rank']}"] += row["wait_ns"] * 1e-9
        self.assertEqual(len(table_s), RANKS)
        for rank, value in table_s.items():
            self.assertAlmostEqual(archive_s[rank], value, delta=operations * 1e-6)

    def assert_operations_have_the_waits(self, table_rows):
        """In the table both ends of a transfer are a Send."""
        with h5py.File(self.output / "profile.h5") as file:
            operations = rows(table(file, "nccl/operations"))
            names = [name.decode().replace("Recv", "Send") for name in file["regions/name"][()]]
        waits_ns, sums_ns = collections.Counter(), collections.Counter()
        for row in operations:
            if row["wait_ns"] == row["wait_ns"]:
                waits_ns[row["rank"], names[row["region"]]] += int(row["wait_ns"])
        for row in table_rows:
            sums_ns[row["rank"], names[row["region"]]] += row["wait_ns"]
        self.assertGreater(max(sums_ns.values()), 0)
        self.assertEqual(waits_ns, sums_ns)

    def test_a_late_host_is_named_with_its_gpu(self):
        tables, attributes, findings = self.job(FAKE_NCCL_LATE="2:0:host")
        self.assert_archive_has_the_waits(tables["lateness"])
        self.assert_late(tables, 2, "host_late_ns", 4)
        self.assert_operations_have_the_waits(tables["lateness"])
        self.assertEqual(attributes["parts_left_out"], 0)
        self.assertEqual(attributes["parts_with_gpu_time"], 4 * 3 * RANKS)
        self.assertNotIn("of their own on the GPU", (self.output / "summary.txt").read_text())
        named = (r"rank 2 on \S+ \(GPU 2\) came last to \d+ of 12 operations of NCCL: the other "
                 r"GPUs waited 2\d\d ms for it, 2\d\d ms of it in ncclAllReduce; its host was late")
        self.assertRegex(findings, named)
        self.assertNotIn("most of that", findings)  # it is in all steps
        self.assert_steps_have_the_cost(range(4), tables)

    def test_the_steps_in_which_it_was_late_are_named(self):
        tables, _, findings = self.job(16, FAKE_NCCL_LATE="2:11:host")
        self.assertRegex(findings, r"rank 2 on .* in ncclAllReduce; its host was late, its GPU "
                                   r"waited for work; most of that in steps 11 to 15")  # fmt: skip
        self.assert_steps_have_the_cost(range(11, 16), tables)

    def assert_steps_have_the_cost(self, late_steps, tables):
        """Of rank 2: in these steps, and all that the table of operations has of it."""
        with h5py.File(self.output / "profile.h5") as file:
            steps = [r for r in rows(table(file, "steps")) if r["rank"] == 2]
        in_late_ns = sum(r["nccl_caused_ns"] for r in steps if r["step"] in late_steps)
        caused_ns = sum(r["caused_ns"] for r in tables["lateness"] if r["rank"] == 2)
        self.assertGreater(in_late_ns, 0.9 * caused_ns)
        self.assertLessEqual(sum(r["nccl_caused_ns"] for r in steps), caused_ns)

    def test_a_busy_gpu_is_told_from_a_late_host(self):
        tables, _, findings = self.job(FAKE_NCCL_LATE="1:0:gpu")
        self.assert_late(tables, 1, "gpu_late_ns", 4)
        self.assertIn("its GPU was late, busy with work before it", findings)

    def test_two_that_are_late_together_are_both_named_with_causes_of_their_own(self):
        tables, _, findings = self.job(FAKE_NCCL_LATE="1:0:gpu,2:0:host")
        late = {r["rank"]: r for r in tables["lateness"] if r["function"] == "ncclAllReduce"}
        self.assertEqual({r: late[r]["shared_count"] for r in late}, {0: 0, 1: 4, 2: 4, 3: 0})
        for rank, cause in ((1, "gpu_late_ns"), (2, "host_late_ns")):
            self.assertGreater(late[rank][cause], late[rank]["caused_ns"] * 0.8)
        named = (r"rank [12] on \S+ \(GPU [12]\) came last together with others to 4 of 12 "
                 r"operations of NCCL: .*; as long for rank [12]")  # fmt: skip
        self.assertRegex(findings, named)

    def test_a_slow_link_is_named_with_both_ends(self):
        tables, _, findings = self.job(FAKE_NCCL_LINK="3:0")
        links = {(r["source_rank"], r["destination_rank"]): r for r in tables["links"]}
        self.assertEqual(sorted(links), [(0, 1), (1, 2), (2, 3), (3, 0)])
        for pair, row in links.items():
            self.assertEqual((row["count"], row["bytes"]), (4, 4 << 23))
            self.assertAlmostEqual(row["bandwidth"], row["bytes"] / row["time_ns"])
            self.assertAlmostEqual(row["ratio"], 20 if pair == (3, 0) else 1, delta=1.5)
        self.assertRegex(findings, r"the link from rank 3 on \S+ \(GPU 3\) to rank 0 on \S+ "
                                   r"\(GPU 0\) is slow: 4 transfers of NCCL took \d+ ms, "
                                   r"(19|20|21)\.\d times")  # fmt: skip

    def network_late(self, tables):
        """{rank: (operations, what members lost, peer)} of those whose sends held up others."""
        return {r["rank"]: (r["network_late_count"], r["network_late_ns"], r["network_late_peer"])
                for r in tables["lateness"] if r["network_late_count"] != 0}  # fmt: skip

    def test_a_link_that_holds_up_an_operation_is_named(self):
        """Steps 5 to 7 take 20 ms more on all ranks: the sends of rank 2 wait for the network."""
        tables, attributes, findings = self.job(8, "step", FAKE_NCCL_NETWORK="2:5:link")
        late = self.network_late(tables)
        self.assertEqual(list(late), [2])
        count, lost_ns, peer = late[2]
        self.assertEqual((count, peer), (3, 3))
        self.assertAlmostEqual(lost_ns / (3 * RANKS * 20 * NS_PER_MS), 1, places=1)
        self.assertEqual(attributes["network_late_operations"], 3)
        self.assertEqual(attributes["network_late_ns"], lost_ns)
        self.assertEqual(attributes["network_late_ns_of_no_link"], 0)
        self.assertEqual(attributes["operations_with_steps"], 8 + 8 * RANKS)
        self.assertEqual(attributes["send_records_left_out"], 0)
        self.assertRegex(findings,
                         r"the network held up 3 operations of NCCL: their GPUs lost 2\d\d ms, "
                         r"2\d\d ms of it by sends from rank 2 on \S+ \(GPU 2\) to rank 3 on \S+ "
                         r"\(GPU 3\), in 3")  # fmt: skip
        self.assertNotIn("with nobody late", findings)  # the same once more

    def test_kernels_that_are_queued_hide_no_link(self):
        """Its sends wait 60 ms for the kernel and 100 ms for the network: less than two thirds."""
        tables, attributes, findings = self.job(8, "step", FAKE_NCCL_NETWORK="2:5:queued")
        late = self.network_late(tables)
        self.assertEqual([(rank, late[rank][0], late[rank][2]) for rank in late], [(2, 3, 3)])
        self.assertEqual(attributes["network_late_operations"], 3)
        self.assertIn("by sends from rank 2", findings)

    def test_a_link_to_a_gpu_that_does_not_take_what_came_is_not_blamed(self):
        """Nor is that GPU, which may have waited for others on its machine."""
        tables, attributes, findings = self.job(8, "step", FAKE_NCCL_NETWORK="2:5:taker")
        self.assertEqual(self.network_late(tables), {})
        self.assertEqual(attributes["network_late_operations"], 0)
        self.assertEqual(attributes["gpu_slow_operations"], 0)
        self.assertRegex(findings, "3 of 8 ncclAllReduce .* with nobody late")

    def test_a_network_that_is_slow_for_all_is_told_without_a_link(self):
        tables, attributes, findings = self.job(8, "step", FAKE_NCCL_NETWORK="2:5:all")
        self.assertEqual(self.network_late(tables), {})
        self.assertEqual(attributes["network_late_operations"], 3)
        self.assertEqual(attributes["network_late_ns_of_no_link"], attributes["network_late_ns"])
        self.assertRegex(findings, r"the network held up 3 operations of NCCL: their GPUs lost "
                                   r"2\d\d ms, no link more than the others")  # fmt: skip

    def test_what_is_not_the_networks_is_not_said_to_be(self):
        for level, fault in (("step", "2:5:gpu"), ("gpu", "2:5:link"), ("net", "2:5:link")):
            with self.subTest(level=level, fault=fault):
                tables, attributes, findings = self.job(8, level, FAKE_NCCL_NETWORK=fault)
                self.assertEqual(self.network_late(tables), {})
                self.assertEqual(attributes["network_late_operations"], 0)
                self.assertRegex(findings, r"3 of 8 ncclAllReduce .* with nobody late: the GPUs or "
                                           r"the links between them were slow")  # fmt: skip
                self.assertNotIn("held up", findings)

    def test_a_late_rank_is_not_the_networks(self):
        """By sockets, sends to who is not there wait for the network."""
        for how, cause in (("host", "host_late_ns"), ("gpu", "gpu_late_ns")):
            with self.subTest(how=how):
                tables, attributes, findings = self.job(8, "step", FAKE_NCCL_LATE=f"2:5:{how}")
                self.assertEqual(self.network_late(tables), {})
                self.assertEqual(attributes["network_late_operations"], 0)
                (late,) = [r for r in tables["lateness"] if r["rank"] == 2
                           and r["function"] == "ncclAllReduce"]  # fmt: skip
                self.assertGreater(late[cause], late["caused_ns"] * 0.8)
                self.assertNotIn("held up", findings)

    def test_without_times_on_the_gpu_it_is_not_told(self):
        tables, attributes, findings = self.job(2, level="api", FAKE_NCCL_LATE="2:0:host")
        self.assertEqual(tables, {"lateness": [], "true_times": [], "links": []})
        self.assertEqual(attributes["parts_without_gpu_time"], 2 * 3 * RANKS)
        self.assertNotIn("NCCL", findings)
        self.assertIn(f"none of {2 * 3 * RANKS} operations of NCCL has a time of its own on the "
                      "GPU: late ranks, slow links and bandwidths are not told; --nccl-level gpu",
                      (self.output / "summary.txt").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
