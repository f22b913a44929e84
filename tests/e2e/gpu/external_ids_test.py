"""External correlation ids that the program gives its calls of CUDA: attributes of these calls in
the archive, and /gpu/external_ids. CUPTI is made up; what the program did it says itself."""
import collections

import h5py
import otf2

from gpu_case import GpuCase, main
from aon_test import ledger

ROUNDS = 40
PREFIX = "external id "


class ExternalIds(GpuCase):
    def run_with_ids(self, *options, rounds=ROUNDS, **knobs):
        self.run_program(10, 1, ranks=1, options=options, GPU_PROGRAM_IDS=rounds, **knobs)

    def told(self):
        """{(kind, id): calls} as the program says."""
        lines = [line.split() for line in self.process.stdout.splitlines()]
        return {(words[1], int(words[2])): int(words[4]) for words in lines if words[:1] == ["id"]}

    def enters(self):
        """[(location, region, correlation, {kind: id})] of the work and calls of CUDA."""
        found = []
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                is_call = location.name.startswith("CUDA calls")
                if location.type != otf2.LocationType.GPU and not is_call:
                    continue
                if not isinstance(event, otf2.events.Enter):
                    continue
                values = {a.name: value for a, value in (event.attributes or {}).items()}
                ids = {name[len(PREFIX):]: value for name, value in values.items()
                       if name.startswith(PREFIX)}
                found.append((location.name, event.region.name, values.get("correlation"), ids))
        return found

    def assert_all_ids(self):
        told = self.told()
        self.assertEqual(len(told), ROUNDS + 1)
        enters = self.enters()
        calls = {correlation: ids for location, _, correlation, ids in enters
                 if location.startswith("CUDA calls")}
        seen = collections.Counter(item for ids in calls.values() for item in ids.items())
        self.assertEqual(dict(seen), told)
        for location, region, correlation, ids in enters:
            if location.startswith("CUDA calls"):
                continue
            self.assertEqual(ids, {}, region)
            given = calls.get(correlation, {})
            if region == "with_id()":
                self.assertEqual(set(given), {"UNKNOWN", "CUSTOM0"})
            elif region == "without_id()":
                self.assertEqual(given, {})
        self.assert_table(told)
        self.assert_archive_is_clean()

    def assert_table(self, told):
        """A kernel of 10 us for each operation; the phase has copies beside these."""
        rows = self.table("external_ids")
        self.assertEqual({(r["kind"], r["id"]): r["calls"] for r in rows}, told)
        for row in rows:
            self.assertEqual((row["rank"], row["process"]), (0, 0))
            self.assertEqual(row["count"], row["calls"])
            if row["kind"] == "CUSTOM0":
                self.assertAlmostEqual(row["total_ns"], 10_000, delta=1000)
            else:
                self.assertGreater(row["total_ns"], 10_000 * ROUNDS)

    def test_are_attributes_of_their_calls_and_sum_up_the_work(self):
        self.run_with_ids()
        self.assert_all_ids()
        self.assertNotIn("external", self.provider()["reason"])

    def test_may_come_behind_their_call(self):
        self.run_with_ids(FAKE_CUPTI_IDS_LATE=1)
        self.assert_all_ids()

    def test_may_come_in_another_buffer_than_their_call(self):
        """Of a size that has a kernel and two ids, and no call; the second time in any order."""
        folder = self.folder
        for name, knobs in {"before": {}, "behind": {"FAKE_CUPTI_IDS_LATE": 1}}.items():
            with self.subTest(name):
                self.folder = folder / name
                self.folder.mkdir()
                self.run_with_ids(FAKE_CUPTI_INLINE=296, **knobs)
                self.assert_all_ids()

    def test_of_calls_without_a_record_are_counted(self):
        self.run_with_ids(FAKE_CUPTI_IDS_ALONE=10)
        lost = ROUNDS * 2 // 10
        calls = sum(r["calls"] for r in self.table("external_ids") if r["kind"] == "UNKNOWN")
        self.assertEqual(calls, 2 * ROUNDS - lost)
        self.assertRegex(self.provider()["reason"],
                         r"(\d+) external correlation ids are of calls without a record")
        self.assertEqual(self.provider()["state"], "on")
        self.assert_law(ledger(self.output))

    def test_are_not_there_where_none_are_given_or_no_calls_are_recorded(self):
        for rounds, options in ((0, ()), (ROUNDS, ("--cupti-calls", "0"))):
            with self.subTest(options):
                self.folder = self.folder / str(rounds)
                self.folder.mkdir()
                self.run_with_ids(*options, rounds=rounds)
                self.assertTrue(all(ids == {} for _, _, _, ids in self.enters()))
                with h5py.File(self.output / "profile.h5") as file:
                    self.assertNotIn("external_ids", file["gpu"])
                self.assertNotIn("external", self.provider()["reason"])


if __name__ == "__main__":
    main()
