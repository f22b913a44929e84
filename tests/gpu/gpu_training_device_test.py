"""Steps of training with PyTorch on a real GPU: AON has as many kernels of each name as
torch.profiler has in another run of the same steps, and the program computes the same. Skipped (77)
without a GPU, without a PyTorch that uses it, and where what CUPTI needs is missing by name."""
import collections
import json
import pathlib
import sys

from device import TRAINING, kernels, need, numbers, skip_without_device, torch_python
from aon_test import SKIPPED, TestCase, ledger, main, run

STEPS = 20
LIMIT_S = 200


def profiled_kernels(path):
    """{name: count} of a Chrome trace of torch.profiler."""
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    return collections.Counter(e["name"] for e in events if e.get("cat") == "kernel")


def differences(ours, theirs):
    """Names that have other counts, as text."""
    return [f"{name[:120]}: {ours.get(name, 0)}, torch.profiler has {theirs.get(name, 0)}"
            for name in sorted({*ours, *theirs}) if ours.get(name, 0) != theirs.get(name, 0)]


class Training(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        output, trace = case.folder / "job", case.folder / "trace.json"
        program = [cls.python, TRAINING, STEPS]
        profiled = run([*program, "cuda", trace], timeout_s=LIMIT_S)
        case.assert_exit(profiled)
        recorded = run(["aon-run", "-o", output, "--budget", "100", "--", *program],
                       timeout_s=LIMIT_S)  # fmt: skip
        case.assert_exit(recorded)
        case.assert_exit(run(["aon", "finalize", "--quiet", output]))
        rank = ledger(output)["ranks"][0]
        need("cupti", rank["providers"]["cupti"])
        cls.lost = rank["lost"]
        cls.losses = [numbers(done.stdout)["loss"] for done in (profiled, recorded)]
        cls.ours = {name: count for name, (count, _) in kernels(output).items()}
        cls.theirs = profiled_kernels(trace)

    def test_there_are_as_many_kernels(self):
        self.assertGreater(sum(self.theirs.values()), 100 * STEPS)
        self.assertEqual(sum(self.ours.values()), sum(self.theirs.values()))

    def test_each_name_is_there_as_often(self):
        self.assertEqual(differences(self.ours, self.theirs), [])

    def test_nothing_is_lost(self):
        self.assertEqual(self.lost, 0)

    def test_the_program_computes_the_same(self):
        self.assertEqual(*self.losses)


if __name__ == "__main__":
    skip_without_device()
    Training.python, why = torch_python()
    if Training.python is None:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    main()
