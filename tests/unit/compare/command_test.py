"""`aon diff` on made-up jobs, of which it is known what differs, and on one that was run."""
import json
import pathlib
import shutil
import sys

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from aon_test import BUILD, TestCase, main, run  # noqa: E402

RANKS, STEPS = 4, 400


class Diff(TestCase):
    def job(self, name, slow=(), slower=1.0, steps=STEPS, kernel_ns=0, seed=1, kept=None,
            first=1.0, middle=1.0, unseen=0):  # fmt: skip
        """A job whose steps compute a millisecond, on the ranks `slow` longer; all wait for it. The
        first 50 take `first` times as long, all but the first and last 200 `middle` times; behind
        the 100th `unseen` numbers are no step's. Of the steps only those `kept` have rows."""
        random = numpy.random.default_rng(seed)
        computing = 1e6 * (1 + 0.01 * random.standard_normal((RANKS, steps)))
        computing[:, :50] *= first
        computing[:, 200:-200] *= middle
        for rank in slow:
            computing[rank] *= slower
        longest = computing.max(axis=0)
        waiting = longest - computing
        mpi = waiting + 1e4
        numbers = numpy.arange(steps) + unseen * (numpy.arange(steps) >= 100)
        columns = {
            "process": numpy.repeat(range(RANKS), steps), "rank": numpy.repeat(range(RANKS), steps),
            "loop": numpy.zeros(RANKS * steps), "step": numpy.tile(numbers, RANKS),
            "duration_ns": (computing + mpi).ravel(),
            "compute_ns": computing.ravel(), "mpi_ns": mpi.ravel(), "wait_ns": waiting.ravel(),
        }  # fmt: skip
        folder = self.folder / name
        folder.mkdir()
        text = h5py.string_dtype()
        with h5py.File(folder / "profile.h5", "w") as file:
            for column, values in columns.items():
                if kept is not None:
                    values = values.reshape(RANKS, steps)[:, kept].ravel()
                file[f"steps/{column}"] = values.astype("int64")
            left_out = 0 if kept is None else RANKS * (steps - len(kept))
            file["steps"].attrs["steps_left_out"] = left_out
            file.create_dataset("regions/name", data=["MPI_Allreduce"], dtype=text)
            file["profile/process"] = numpy.arange(RANKS)
            file["profile/region"] = numpy.zeros(RANKS, "uint32")
            file["profile/exclusive_ns"] = mpi.sum(axis=1).astype("uint64")
            file["profile/count"] = numpy.full(RANKS, steps, "uint64")
            file["profile/bytes"] = numpy.full(RANKS, 8 * steps, "uint64")
            if kernel_ns:
                file.create_dataset("gpu/kernels/name", data=["gemm"], dtype=text)
                file["gpu/kernels/process"] = [0]
                file["gpu/kernels/total_ns"] = [kernel_ns * RANKS * steps]
                file["gpu/kernels/count"] = [RANKS * steps]
        end = f"2026-01-01T00:00:{(longest + 1e4).sum() / 1e9 + 1:012.9f}Z"
        ledger = {
            "job": {"start": "2026-01-01T00:00:00.000000000Z", "end": end, "complete": True},
            "ranks": [{"rank": rank, "node": f"n{rank}", "program": "/bin/solve", "lost": 0}
                      for rank in range(RANKS)],
            "steps": {"source": "annotated", "loops": [{"name": "step", "count": steps}]},
            "overhead": {"ranks_cpu_s": computing.sum() / 1e9},
        }  # fmt: skip
        (folder / "aon.json").write_text(json.dumps(ledger))
        return folder

    def diff(self, *words, code=0):
        done = run(["aon", "diff", *words])
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code in (0, 4, 5) else done.stderr

    def told(self, *words):
        return json.loads(self.diff("--json", *words))

    def test_a_slow_rank_is_named_with_what_it_costs(self):
        base, now = self.job("base"), self.job("now", slow=[2], slower=1.4, seed=2)
        text = self.diff(base, now)
        self.assertRegex(text, r"step 'step': 1\.0\d+ ms -> 1\.4\d+ ms: slower, \+3\d\.\d+ %")
        self.assertRegex(text, r"rank 2 \(on n2\) computes 1\.(399|40\d) times as long as before")
        self.assertNotIn("rank 1 ", text)
        self.assertIn("of the steps within these two runs", text)
        told = self.told(base, now)
        self.assertEqual(told["verdict"], "slower")
        [loop] = told["loops"]
        low, high = loop["ranks"][0]["compute_ns"]["ratio_interval"]
        self.assertLess(low, 1.4)
        self.assertGreater(high, 1.4)
        self.assertLess(high - low, 0.02)
        parts = [loop[name] for name in ("compute_ns", "wait_ns", "other_mpi_ns")]
        whole = loop["duration_ns"]["new"]
        self.assertAlmostEqual(sum(part["new"] for part in parts) / whole, 1, 5)

    def test_runs_that_are_alike_are_so(self):
        base, now = ([self.job(f"{side}{i}", seed=10 * i + s) for i in range(4)]
                     for s, side in enumerate(("base", "new")))  # fmt: skip
        told = self.told("--base", *base, "--new", *now)
        self.assertEqual((told["base_runs"], told["new_runs"]), (4, 4))
        self.assertEqual(told["intervals_are_of"], "runs")
        self.assertEqual(told["verdict"], "no difference seen")
        self.assertEqual(told["regions"], [])
        text = self.diff("--base", *base, "--new", *now)
        self.assertRegex(text, r"no difference seen, [+-]0\.\d+ % \([+-]0\.\d+ to [+-]0\.\d+\)")
        told = self.told("--base", *base, "--new", now[0])
        self.assertEqual((told["intervals_are_of"], told["new_runs"]), ("runs", 1))
        self.assertEqual(told["verdict"], "no difference seen")

    def test_of_thinned_steps_the_first_ones_do_not_weigh_more(self):
        """A long job's table has all of its first and last steps, and every 16th between."""
        steps = 4000
        kept = [i for i in range(steps) if i < 200 or i >= steps - 200 or i % 16 == 0]
        base = self.job("base", steps=steps, kept=kept)
        now = self.job("now", steps=steps, kept=kept, first=5.0, seed=2)
        told = self.told(base, now)
        self.assertEqual(told["verdict"], "no difference seen")
        self.assertEqual(told["not_the_same"], [])

    def test_of_thinned_steps_those_behind_a_loss_count(self):
        """Steps that were lost, or paused, are no reason to leave out the others behind them."""
        steps = 4000
        kept = [i for i in range(steps) if i < 200 or i >= steps - 200 or i % 16 == 0]
        base = self.job("base", steps=steps, kept=kept)
        for unseen in (7, 3000):
            now = self.job(f"now{unseen}", steps=steps, kept=kept, middle=1.2, unseen=unseen)
            told = self.told(base, now)
            [loop] = told["loops"]
            step = loop["duration_ns"]
            self.assertAlmostEqual(step["new"] / step["base"], 1.19, 1, unseen)
            self.assertEqual(told["verdict"], "slower")
            self.assertEqual(told["not_the_same"], [])

    def test_a_limit_is_an_exit_code(self):
        base = self.job("base")
        slower = self.job("slower", slow=range(RANKS), slower=1.1, seed=2)
        self.diff(base, slower, "--limit", "20")
        self.diff(base, slower, "--limit", "5", code=4)
        same = self.job("same", seed=3)
        self.diff(base, same, "--limit", "0", code=5)
        self.diff(base, same, "--limit", "1")
        for wrong in ("-1", "nan", "inf"):
            self.assertIn("--limit", self.diff(base, slower, "--limit", wrong, code=2))

    def test_kernels_are_compared(self):
        base = self.job("base", kernel_ns=200_000)
        now = self.job("now", kernel_ns=300_000, seed=2)
        [kernel] = [one for one in self.told(base, now)["regions"] if one["is_kernel"]]
        self.assertEqual(kernel["name"], "gemm")
        self.assertEqual((kernel["time_ns"]["base"], kernel["time_ns"]["new"]), (2e5, 3e5))

    def test_kernels_that_are_not_all_told_apart_are_told(self):
        jobs = [self.job(name, kernel_ns=200_000) for name in ("base", "now")]
        for joined, told in ((0, 0), (3, 1)):
            with h5py.File(jobs[1] / "profile.h5", "a") as file:
                file["gpu/kernels"].attrs["joined"] = joined
            texts = self.told(*jobs)["not_the_same"]
            self.assertEqual(["(more kernels)" in text for text in texts], [True] * told)

    def test_what_is_not_the_same_is_said_first(self):
        text = self.diff(self.job("base"), self.job("now", steps=100, seed=2))
        self.assertTrue(text.startswith("not the same: steps of 'step': 400; then 100\n"), text)

    def test_programs_without_ranks_are_told_apart(self):
        jobs = [self.job("base"), self.job("now", seed=2)]
        for job, program in zip(jobs, ("/bin/old", "/bin/new")):
            ledger = json.loads((job / "aon.json").read_text())
            ledger["ranks"] = [{"rank": None, "node": "n0", "program": program, "lost": 0}]
            (job / "aon.json").write_text(json.dumps(ledger))
        self.assertEqual(self.told(*jobs)["not_the_same"], ["program: /bin/old; then /bin/new"])

    def test_wrong_use_is_told(self):
        base = self.job("base")
        self.assertIn("give BASE and NEW", self.diff(base, code=2))
        self.assertIn("two job directories are needed", self.diff(code=2))
        self.assertIn("two job directories are needed", self.diff("--base", base, code=2))
        self.assertIn("no such directory", self.diff(base, self.folder / "none", code=2))
        other = self.job("other", seed=2)
        self.assertIn("give BASE and NEW", self.diff(base, other, "--new", other, code=2))
        self.assertIn("is given twice",
                      self.diff("--base", base, base, "--new", other, code=2))  # fmt: skip
        self.assertIn("is given twice", self.diff(base, base, code=2))
        (other / "aon.json").write_text("{")
        self.assertIn("aon.json", self.diff(base, other, code=1))
        (base / "profile.h5").unlink()
        self.assertIn("aon finalize", self.diff(base, base, code=2))

    def test_files_of_others_are_refused_with_their_name(self):
        for name, change in (("steps/wait_ns", [1, 2]), ("profile/region", [9] * RANKS)):
            job = self.job(name.replace("/", "-"))
            with h5py.File(job / "profile.h5", "a") as file:
                del file[name]
                file[name] = change
            said = self.diff(job, job, code=1)
            self.assertIn(f"{job}/profile.h5", said)
            self.assertIn("do not belong together", said)

    def test_an_attribute_of_another_kind_is_refused(self):
        job = self.job("job")
        with h5py.File(job / "profile.h5", "a") as file:
            file["steps"].attrs["steps_left_out"] = numpy.zeros(5000, "int64")
        said = self.diff(job, self.job("other", seed=2), code=1)
        self.assertIn("steps_left_out: not one value", said)

    def test_a_real_job_and_itself(self):
        output = self.folder / "job"
        heat = BUILD / "bin" / "heat2d"
        done = run(["mpirun", "-n", 2, "aon-run", "-o", output, heat, "--size", 64, "--steps", 60])
        self.assert_exit(done)
        again = shutil.copytree(output, self.folder / "again")
        told = self.told(output, again)
        self.assertEqual(told["verdict"], "no difference seen")
        [loop] = told["loops"]
        self.assertEqual((loop["name"], loop["new_steps"]), ("step", 60))
        self.assertGreater(loop["duration_ns"]["base"], 0)
        self.assertEqual(told["not_the_same"], [])


if __name__ == "__main__":
    main()
