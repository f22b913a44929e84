"""Samples of a program whose functions take a known share of its time, read back by others'
readers: h5py, otf2-print and python3-otf2."""
import pathlib

from sampling import HOT, JIT, UNBOUNDED, WITHOUT_FP, Samples, folded, skip_without_perf

import aon_test
from aon_test import PYTHON, ledger, profile, run

_READ = """
import sys, otf2
from collections import Counter
by_name, locations, generators = Counter(), set(), set()
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        assert isinstance(event, otf2.events.CallingContextSample), event
        by_name[event.calling_context.region.name] += 1
        locations.add(location.name)
        generators.add(event.interrupt_generator.name)
print(by_name["hot"], by_name["cold"], sum(by_name.values()), sorted(locations), sorted(generators))
"""


class Sampling(aon_test.TestCase):
    def sample(self, *arguments, options=(), program=HOT, rank_count=2):
        output = self.folder / "out"
        done = profile(rank_count, output, program, *arguments, options=(*UNBOUNDED, *options))
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        return output, document

    def test_functions_have_their_share(self):
        """97 Hz for 2 s in each of 2 ranks are 388 samples, of which 70 % are in hot(): the
        standard error of a rank is 3.3 %, and five of them are allowed."""
        output, document = self.sample(2000, options=("--sampling", "97"))
        samples = Samples(output)
        for rank in (0, 1):
            counts = samples.by_function(rank)
            share = counts["hot"] / max(1, counts["hot"] + counts["cold"])
            self.assertAlmostEqual(share, 0.7, delta=0.17, msg=str(counts))
        counts = samples.by_function()
        # Of a rank that waits for the other one, which has no core, there are more in MPI.
        self.assertGreater(counts["hot"] + counts["cold"], 0.8 * 388, str(counts))
        emitted = sum(r["providers"]["sampling"]["emitted"] for r in document["ranks"])
        self.assertEqual(samples.count(), emitted)
        self.assertEqual(document["sampling"]["functions"][0]["function"], "hot")
        self.assertEqual(samples.attributes["rate_hz"], 97)

    def test_paths_lines_and_folded_stacks(self):
        output, _ = self.sample(1000)
        samples = Samples(output)
        hot = [n for n in range(len(samples.parents)) if samples.path(n)[-1] == "hot"]
        self.assertTrue(hot)
        for node in hot:
            if samples.self_counts[node] > 0:
                self.assertEqual(samples.path(node)[-3:], ["main", "work", "hot"])
                self.assertTrue(samples.files[samples.functions[node]].endswith("hot.c"))
                self.assertGreater(samples.lines[node], 0)
        main = [n for n in range(len(samples.parents)) if samples.path(n)[-1] == "main"]
        total = sum(samples.total_counts[n] for n in main)
        self.assertGreaterEqual(total, sum(samples.total_counts[n] for n in hot))
        stacks = folded(output)
        self.assertEqual(sum(stacks.values()), samples.count())
        self.assertTrue(any(stack.endswith("main;work;hot") for stack in stacks), stacks)
        self.assertTrue(all(s.startswith("rank ") for s in folded(output, "--by-rank")))

    def test_the_archive_of_samples_is_read_by_others(self):
        output, _ = self.sample(1000, 2)
        archive = output / "samples" / "traces.otf2"
        printed = run(["otf2-print", "--silent", "-Werror", archive])
        self.assert_exit(printed)
        self.assertEqual(printed.stderr, "")
        read = run([PYTHON, "-c", _READ, archive])
        self.assert_exit(read)
        hot, cold, total = map(int, read.stdout.split()[:3])
        counts = Samples(output).by_function()
        self.assertEqual((hot, cold), (counts["hot"], counts["cold"]))
        self.assertEqual(total, sum(counts.values()))
        self.assertIn("Master thread", read.stdout)
        self.assertIn("Thread ", read.stdout)

    def test_threads_are_found_and_named(self):
        output, _ = self.sample(600, 3, rank_count=1)
        samples = Samples(output)
        busy = {tid for _, tid, node, _ in samples.rows if samples.path(node)[-1] == "hot"}
        self.assertEqual(len(busy), 3)

    def test_callers_without_frame_pointers(self):
        """By copies of the stack every path is whole; --call-graph=fp misses callers here."""
        options = ("--call-graph", "dwarf")
        output, _ = self.sample(1000, options=options, program=WITHOUT_FP, rank_count=1)
        samples = Samples(output)
        whole = broken = 0
        for _, _, node, count in samples.rows:
            path = samples.path(node)
            if path[-1] not in ("hot", "cold"):
                continue
            if path[-3:-1] == ["main", "work"]:
                whole += count
            else:
                broken += count
        self.assertGreater(whole, 20)
        self.assertLess(broken, 0.05 * whole)

    def test_the_budget_lowers_the_rate(self):
        output = self.folder / "out"
        options = ("--sampling", "997", "--budget", "0.05")
        self.assert_exit(profile(1, output, HOT, 6000, options=options))
        document = ledger(output)
        rates = document["sampling"]["rates_hz"]
        self.assertEqual(rates[0], 997)
        self.assertGreater(len(rates), 1, rates)
        self.assertLess(min(rates), 997)
        self.assertGreaterEqual(min(rates), 1, "the lowest")
        provider = document["ranks"][0]["providers"]["sampling"]
        self.assertEqual(provider["state"], "degraded")
        self.assertIn("the budget lowered the rate from 997 to", provider["reason"])
        self.assertLess(Samples(output).count(), 0.9 * 997 * 6)

    def test_none_when_not_asked_for(self):
        output = self.folder / "out"
        done = profile(1, output, HOT, 100, options=("--sampling", "0"))
        self.assert_exit(done)
        self.assertFalse((output / "samples").exists())
        node = ledger(output)["nodes"][0]["providers"]["sampling"]
        self.assertEqual((node["state"], node["remedy"]), ("off", "--sampling=97"))
        refused = run(["aon", "export", output, "--folded", "-"])
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no samples", refused.stderr)

    def sample_made_code(self, *arguments, options=()):
        output, document = self.sample(*arguments, options=options, program=JIT, rank_count=1)
        for rank in document["ranks"]:
            pathlib.Path(f"/tmp/perf-{rank['pid']}.map").unlink()
        return Samples(output)

    def test_code_made_at_run_time_has_its_name(self):
        counts = self.sample_made_code().by_function()
        self.assertGreater(counts["compiled loop"], 0.8 * sum(counts.values()), str(counts))


if __name__ == "__main__":
    skip_without_perf()
    aon_test.unittest.main()
