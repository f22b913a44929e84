"""Metrics of the node and of each rank in a real job: in profile.h5 with unit, description and
what they cover, in the archive, in the ledger; what this machine does not have is told once, and
`aon doctor` says the same."""
import json
import unittest

import h5py
import otf2

from aon_test import TestCase, ledger, profile, run

RANKS = 2
WRITTEN_BYTES = 8 << 20
PROVIDERS = ("energy", "membw", "network", "node", "process")
MARK = "(node-wide, not this job)"


class NodeMetrics(TestCase):
    """One run, shared by all tests: each rank writes a file and is there for some
    seconds. Bytes count from when the agent has seen the process."""

    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.output = case.folder / "job"
        script = (f"sleep 1; dd if=/dev/zero of={case.folder}/file.$OMPI_COMM_WORLD_RANK bs=1M "
                  f"count={WRITTEN_BYTES >> 20} conv=fsync 2>/dev/null; sleep 2")
        process = profile(RANKS, cls.output, "bash", "-c", script, options=["--without", "mpi"])
        case.assert_exit(process)
        finished = run(["aon", "finalize", "--quiet", cls.output])
        case.assert_exit(finished)
        cls.document = ledger(cls.output)
        cls.file = h5py.File(cls.output / "profile.h5")
        cls.addClassCleanup(cls.file.close)

    def providers(self):
        return self.document["nodes"][0]["providers"]

    def is_found_still(self, name):
        """A counter that does not count, as RAPL's in some virtual machines: seen by readings."""
        return "do not count" in self.providers()[name]["reason"]

    def assert_never_back(self, dataset):
        values = [v for v in dataset[:] if v == v]
        if dataset.attrs["mode"] == "accumulated":
            self.assertEqual(values, sorted(values), dataset.name)

    def test_series_are_below_their_node_and_rank(self):
        node = set(self.file["series/node_0"])
        running = {n for n in PROVIDERS if self.providers()[n]["state"] != "off"}
        still = {n for n in PROVIDERS if self.is_found_still(n)}
        self.assertEqual(node - still, running - still - {"process"})
        for rank in range(RANKS):
            self.assertIn("process", self.file[f"series/rank_{rank}"])

    def test_series_say_what_they_cover(self):
        host = self.document["nodes"][0]["node"]
        attributes = self.file["series/node_0/node"].attrs
        self.assertEqual((attributes["node"], attributes["ranks"]), (host, "0-1"))
        self.assertIn("also what others do on it", attributes["covers"])
        attributes = self.file["series/rank_1/process"].attrs
        self.assertEqual((attributes["node"], attributes["ranks"]), (host, "1"))
        self.assertEqual(attributes["covers"], f"rank 1 on {host}")

    def test_metrics_have_unit_and_description(self):
        units = {"node/memory-used": "By", "node/cpu-user": "s", "node/load": "1",
                 "node/context-switches": "1"}
        for name, unit in units.items():
            dataset = self.file[f"series/node_0/{name}"]
            self.assertEqual(dataset.attrs["units"], unit)
            self.assertTrue(dataset.attrs["long_name"].endswith(MARK), name)
        for name in ("memory", "memory-peak", "io-written", "storage-written"):
            dataset = self.file[f"series/rank_0/process/{name}"]
            self.assertEqual(dataset.attrs["units"], "By")
            self.assertNotIn(MARK, dataset.attrs["long_name"])

    def test_counts_begin_at_zero_and_never_go_back(self):
        def check(name, item):
            if isinstance(item, h5py.Dataset) and not name.endswith("/time"):
                self.assert_never_back(item)

        self.file["series"].visititems(check)
        self.assertEqual(self.file["series/node_0/node/context-switches"][0], 0)
        self.assertGreater(self.file["series/node_0/node/context-switches"][-1], 0)
        self.assertEqual(self.file["series/rank_0/process/io-written"][0], 0)

    def test_ledger_has_the_bytes_of_each_rank(self):
        for rank in range(RANKS):
            entry = next(r for r in self.document["ranks"] if r["rank"] == rank)
            self.assertGreaterEqual(entry["io_bytes"]["io-written"], WRITTEN_BYTES)
            last = self.file[f"series/rank_{rank}/process/io-written"][-1]
            self.assertEqual(entry["io_bytes"]["io-written"], last)
            self.assertEqual(entry["providers"]["process"]["state"], "on")
            self.assertGreater(entry["providers"]["process"]["emitted"], 0)

    def test_ledger_has_the_energy_or_why_not(self):
        energy = self.document["energy"]
        provider = self.providers()["energy"]
        if provider["state"] == "off":
            self.assertIsNone(energy["joules"])
            self.assertEqual(energy["reason"], provider["reason"])
            self.assertIsNone(self.document["nodes"][0]["energy"])
            if not self.is_found_still("energy"):
                self.assertEqual(provider["emitted"], 0)
        else:
            self.assertGreater(energy["joules"], 0)
            self.assertTrue(self.document["nodes"][0]["energy"]["node_wide"])

    def test_what_is_missing_has_a_reason_and_doctor_says_the_same(self):
        checks = json.loads(run(["aon", "doctor", "--json"]).stdout)
        by_name = {check["name"]: check for check in checks}
        for name in PROVIDERS:
            provider = self.providers()[name]
            check = by_name[f"provider {name}"]
            if self.is_found_still(name):
                self.assertEqual(provider["state"], "off", name)
                self.assertEqual((check["state"], check["detail"], check["remedy"]),
                                 ("no", provider["reason"], provider["remedy"]))
            elif provider["state"] == "off":
                self.assertTrue(provider["reason"], name)
                self.assertEqual((check["state"], check["detail"], check["remedy"]),
                                 ("no", provider["reason"], provider["remedy"]))
            else:
                self.assertNotEqual(check["state"], "no", name)

    def test_archive_has_the_metrics(self):
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            members = {m.name: m for m in trace.definitions.metric_members}
        used = members["node::memory-used"]
        self.assertEqual(used.unit, "By")
        self.assertIn(MARK, used.description)
        self.assertEqual(members["process::io-written"].unit, "By")


class LeftOut(TestCase):
    def test_providers_can_be_left_out_one_by_one(self):
        output = self.folder / "job"
        options = ["--without", "mpi,node,network"]
        self.assert_exit(profile(1, output, "sleep", "0.5", options=options))
        self.assert_exit(run(["aon", "finalize", "--quiet", output]))
        document = ledger(output)
        for name in ("node", "network"):
            provider = document["nodes"][0]["providers"][name]
            self.assertEqual((provider["state"], provider["reason"]),
                             ("off", "excluded by --without"))
        with h5py.File(output / "profile.h5") as file:
            self.assertNotIn("node", file["series"].get("node_0", {}))
            self.assertIn("process", file["series/rank_0"])


if __name__ == "__main__":
    unittest.main()
