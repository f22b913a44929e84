#!/usr/bin/python3
"""Steps of real programs: annotated, and found without annotation, each with its confidence.

    steps_test.py [Heat|Lammps|Hpcc|Irregular]
"""
import pathlib
import re
import shutil
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import BUILD, SOURCE, TestCase, environment, ledger, profile  # noqa: E402

PROGRAMS = SOURCE / "tests" / "e2e" / "programs"
PARTS = ("duration", "mpi", "compute", "wait")


class StepsTestCase(TestCase):
    def job(self, rank_count, *command, inputs=()):
        """Runs a program under AON; its ledger's "steps" and the job directory."""
        for name in inputs:
            shutil.copy(PROGRAMS / name, self.folder)
        output = self.folder / "job"
        env = environment(AON_MEMORY="64MiB")
        done = profile(rank_count, output, *command, cwd=self.folder, env=env)
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        steps = document["steps"]
        print(f"{pathlib.Path(str(command[0])).name}: {steps['source']}, confidence "
              f"{steps['confidence']:.2f}: {[(s['name'], s['count']) for s in steps['loops']]}")
        self.assert_tables(output, document)
        return output, document

    def assert_tables(self, output, document):
        """/steps and /step_statistics say what the ledger says; a step is made of its parts."""
        readers.hdf5(self, output)
        with h5py.File(output / "profile.h5") as file:
            table = {name: column[()] for name, column in file["steps"].items() if name != "row"}
            statistics = file["step_statistics"]
            attributes = dict(file["steps"].attrs)
            self.assertEqual(attributes["source"], document["steps"]["source"])
            self.assertAlmostEqual(float(attributes["confidence"]), document["steps"]["confidence"])
            self.assertEqual(int(attributes["steps_left_out"]), 0)
            self.assertEqual(len(table["step"]), document["steps"]["steps_of_all_ranks"])
            self.assertEqual(int(numpy.sum(statistics["count"])), len(table["step"]))
            parts = table["mpi_ns"] + table["compute_ns"]
            self.assertTrue((parts == table["duration_ns"]).all())
            self.assertTrue((table["wait_ns"] <= table["mpi_ns"]).all())
            for row in range(len(statistics["count"])):
                mine = table["process"] == statistics["process"][row]
                mine &= table["loop"] == statistics["loop"][row]
                for part in PARTS:
                    values = table[f"{part}_ns"][mine]
                    self.assertEqual(len(values), statistics["count"][row])
                    self.assertAlmostEqual(
                        float(statistics[f"{part}_mean_ns"][row]), values.mean(), delta=1
                    )
                    self.assertEqual(statistics[f"{part}_max_ns"][row], values.max())
                    self.assertEqual(statistics[f"{part}_min_ns"][row], values.min())
                begins = table["begin_ns"][mine]
                ends = begins + table["duration_ns"][mine]
                self.assertTrue((begins[1:] >= ends[:-1]).all(), "steps overlap")


class Heat(StepsTestCase):
    ARGUMENTS = (
        *("--size", 768, "--steps", 100, "--check", 10),
        *("--slow-rank", 2, "--slow-factor", 16),
    )

    def job_with_slow_rank(self, program, *arguments, shows):
        """A job of which `shows(document)` holds, or the last of three: where others use the
        cores, another rank may be the slow one."""
        for _ in range(3):
            shutil.rmtree(self.folder / "job", ignore_errors=True)
            output, document = self.job(4, BUILD / "bin" / program, *arguments)
            if shows(document):
                break
        return output, document

    @staticmethod
    def has_slow_rank(document):
        return any(f.startswith("rank 2 computes") for f in document["findings"])

    def assert_slow_rank(self, document):
        steps = document["steps"]
        self.assertEqual(steps["count"], 100)
        self.assertEqual(steps["ranks"], 4)
        self.assertEqual(steps["agreement"], 1)
        self.assertEqual(steps["slowest_rank"], 2)
        # 16 where each rank has a core of its own; less where ranks wait for one.
        self.assertGreater(steps["slowest_ratio"], 1.2)
        self.assertEqual(steps["steps_of_all_ranks"], 400)
        (finding,) = [f for f in document["findings"] if "in each step" in f]
        # Of other words beyond 20, where the machine is busy.
        self.assertRegex(finding, r"^rank 2 computes (\d+\.\d times as long as|[\d.]+ m?s longer "
                                  r"than) the median")  # fmt: skip
        self.assertIn("median of 100 steps", finding)
        self.assertNotIn("most of that", finding)
        return finding

    def test_slow_rank_is_found_by_its_annotated_steps(self):
        output, document = self.job_with_slow_rank(
            "heat2d", *self.ARGUMENTS, shows=self.has_slow_rank)
        self.assertEqual(document["steps"]["source"], "annotated")
        self.assertEqual(document["steps"]["confidence"], 1)
        self.assertNotIn("confidence", self.assert_slow_rank(document))
        with h5py.File(output / "profile.h5") as file:
            numbers = file["steps/step"][()].reshape(4, 100)
            self.assertEqual(numbers.tolist(), [list(range(100))] * 4)
            self.assertEqual(file["steps/compute_ns"].attrs["units"], "ns")

    def test_the_steps_in_which_a_rank_is_slow_are_named(self):
        slow = ("--slow-rank", 2, "--slow-factor", 64, "--slow-from", 30, "--slow-until", 49)

        def findings_of(document):
            return [f for f in document["findings"] if "most of that" in f]

        _, document = self.job_with_slow_rank(
            "heat2d", "--size", 768, "--steps", 100, *slow,
            shows=lambda document: len(findings_of(document)) == 1)
        (finding,) = findings_of(document)
        self.assertRegex(finding, r"^rank 2 ")
        first, last = re.search(r"; most of that in steps (\d+) to (\d+)", finding).groups()
        self.assertGreaterEqual(int(first), 28)
        self.assertLessEqual(int(last), 51)

    def test_slow_rank_is_found_without_annotations(self):
        _, document = self.job_with_slow_rank(
            "steps_plain_heat2d", *self.ARGUMENTS, shows=self.has_slow_rank)
        self.assertEqual(document["steps"]["source"], "detected")
        self.assertIn("confidence 0.", self.assert_slow_rank(document))
        self.assertGreater(document["steps"]["confidence"], 0.4)
        self.assertAlmostEqual(document["steps"]["matched"], 0.9, delta=0.05)


class Lammps(StepsTestCase):
    SURE = 0.6  # quiet machines give 0.88

    def test_its_steps_are_its_timesteps(self):
        """The calls within a step of LAMMPS look alike, so its steps are told apart by the
        computing between them too: on a busy machine they may be missed, which it must know.
        That it never is sure, it is no machine's fault."""
        for _ in range(5):
            shutil.rmtree(self.folder / "job", ignore_errors=True)
            _, document = self.job(2, "lmp", "-in", "in.lj", "-log", "none", inputs=["in.lj"])
            steps = document["steps"]
            self.assertIn(steps["source"], ("detected", "none found"))
            if steps["confidence"] > self.SURE:
                break
        self.assertGreater(steps["confidence"], self.SURE)
        self.assertEqual(steps["ranks"], 2)
        self.assertAlmostEqual(steps["count"], 100, delta=5)


class Hpcc(StepsTestCase):
    PHASES = 3  # quiet machines give four

    def test_its_phases_are_loops_of_their_own(self):
        for _ in range(3):  # a busy machine may hide some
            shutil.rmtree(self.folder / "job", ignore_errors=True)
            output, document = self.job(2, "hpcc", inputs=["hpccinf.txt"])
            steps = document["steps"]
            self.assertLess(steps["confidence"], 0.9)
            if len(steps["loops"]) >= self.PHASES:
                break
        self.assertEqual(steps["source"], "detected")
        self.assertGreaterEqual(len(steps["loops"]), self.PHASES)
        # Its random access waits 4000 times; a busy machine may hide more than half of that.
        self.assertGreater(max(loop["count"] for loop in steps["loops"]), 1000)
        with h5py.File(output / "profile.h5") as file:
            begin, duration = file["steps/begin_ns"][()], file["steps/duration_ns"][()]
            rank, loop = file["steps/rank"][()], file["steps/loop"][()]
        for process in (0, 1):
            spans = []
            for number in range(len(steps["loops"])):
                mine = (rank == process) & (loop == number)
                if mine.any():
                    spans.append((begin[mine].min(), (begin + duration)[mine].max()))
            spans.sort()
            for (_, end), (next_begin, next_end) in zip(spans, spans[1:]):
                shared = max(0, int(min(end, next_end)) - int(next_begin))
                self.assertLessEqual(shared, 0.2 * (next_end - next_begin), "phases overlap")


class Irregular(StepsTestCase):
    def test_no_steps_are_invented(self):
        _, document = self.job(2, BUILD / "bin" / "steps_irregular")
        steps = document["steps"]
        self.assertEqual(steps["source"], "none found")
        self.assertEqual((steps["confidence"], steps["steps_of_all_ranks"]), (0, 0))
        self.assertEqual(steps["loops"], [])
        self.assertFalse([f for f in document["findings"] if "step" in f])


if __name__ == "__main__":
    unittest.main(verbosity=2)
