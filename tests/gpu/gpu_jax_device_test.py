"""Steps of a JAX program on a real GPU: what a step launches is there once per step, and it
computes the same. Skipped (77) without a GPU or a JAX that uses it."""
import os
import shutil
import sys

import h5py
from device import HERE, kernels, need, numbers, skip_without_device
from aon_test import SKIPPED, TestCase, environment, ledger, main, run

STEPS = (30, 130)
LIMIT_S = 120


def has_jax(name):
    """Whether the interpreter has a JAX that uses a GPU. One that crashes is not one without."""
    done = run([name, HERE / "jax_steps.py", 1], timeout_s=LIMIT_S)
    if done.returncode not in (0, SKIPPED):
        raise AssertionError(f"{name} exits {done.returncode}: {done.stdout}{done.stderr}")
    return done.returncode == 0


def jax_python():
    """An interpreter with a JAX that has GPUs, or None."""
    names = (os.environ.get("AON_JAX_PYTHON"), shutil.which("python3"), sys.executable)
    return next(filter(has_jax, dict.fromkeys(filter(None, names))), None)


class Jax(TestCase):
    def record(self, steps):
        """({kernel or "graph": count}, what the program prints)."""
        output = self.folder / f"job-{steps}"
        done = run(["aon-run", "-o", output, "--budget", "100", "--", self.python,
                    HERE / "jax_steps.py", steps], env=environment(), timeout_s=LIMIT_S)
        self.assert_exit(done)
        self.assert_exit(run(["aon", "finalize", "--quiet", output]))
        document = ledger(output)
        need("cupti", document["ranks"][0]["providers"]["cupti"])
        self.assert_law(document)
        self.assertEqual(document["ranks"][0]["lost"], 0)
        counts = {name: count for name, (count, _) in kernels(output).items()}
        with h5py.File(output / "profile.h5") as file:
            if "gpu/graphs" in file:
                counts["graph"] = int(file["gpu/graphs/count"][:].sum())
        return counts, done.stdout

    def test_each_step_is_there(self):
        few, _ = self.record(STEPS[0])
        many, told = self.record(STEPS[1])
        more = {name: count - few.get(name, 0) for name, count in many.items()}
        print(more)
        per_step = {name: count for name, count in more.items() if count}
        self.assertTrue(per_step)
        for name, count in per_step.items():
            self.assertEqual(count % (STEPS[1] - STEPS[0]), 0, (name, count))
        plain = run([self.python, HERE / "jax_steps.py", STEPS[1]], timeout_s=LIMIT_S)
        self.assertEqual(numbers(plain.stdout)["loss"], numbers(told)["loss"])


if __name__ == "__main__":
    skip_without_device()
    Jax.python = jax_python()
    if Jax.python is None:
        print("skipped: no JAX that uses a GPU: AON_JAX_PYTHON names an interpreter that has it")
        sys.exit(SKIPPED)
    main()
