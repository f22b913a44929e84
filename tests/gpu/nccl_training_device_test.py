"""Data-parallel training with PyTorch and NCCL, two ranks on one GPU (ddp.py): both ranks have the
same operations, at least one AllReduce a step, time on the GPU for it, and compute what they do
without AON. Skipped (77) without a GPU, PyTorch or mpirun."""
import collections
import pathlib
import sys

import h5py
from device import HERE, mpirun_problem, need, numbers, skip_without_device, torch_python
from aon_test import BUILD, SKIPPED, TestCase, ledger, main, run

RANKS = 2
STEPS = 20
LIMIT_S = 120


def operations_of(output):
    """{rank: {function: how many}} of /nccl/operations."""
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        names = file["regions/name"].asstr()[:]
        table = file["nccl/operations"]
        counts = collections.defaultdict(collections.Counter)
        for rank, region in zip(table["rank"][:], table["region"][:]):
            counts[int(rank)][names[region]] += 1
    return counts


def communication_ns(output):
    """Of all devices' time, by /gpu/use."""
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        return float(file["gpu/use/communication_ns"][:].sum())


class NcclTraining(TestCase):
    def train(self, name, *aon):
        ids = self.folder / f"{name}.id"
        # Bound to one core, a rank that waits for the GPU keeps NCCL's proxy from running.
        done = run(["mpirun", "--bind-to", "none", "--oversubscribe", "-n", RANKS, *aon,
                    self.python, HERE / "ddp.py", ids, STEPS], timeout_s=LIMIT_S)  # fmt: skip
        self.assert_exit(done)
        return numbers(done.stdout)["loss"]

    def test_ranks_have_the_same_operations(self):
        output = self.folder / "job"
        recorded = self.train("on", BUILD / "bin" / "aon-run", "-o", output, "--budget", "100",
                              "--")  # fmt: skip
        self.assert_exit(run(["aon", "finalize", "--quiet", output]))
        document = ledger(output)
        self.assert_law(document)
        need("cupti", document["ranks"][0]["providers"]["cupti"])
        told = operations_of(output)
        print({rank: dict(counts) for rank, counts in told.items()})
        self.assertEqual(set(told), set(range(RANKS)))
        self.assertEqual(told[0], told[1])
        self.assertGreaterEqual(told[0]["ncclAllReduce"], STEPS)
        self.assertGreater(communication_ns(output), 0)
        self.assertEqual(recorded, self.train("off"))


if __name__ == "__main__":
    skip_without_device()
    NcclTraining.python, why = torch_python()
    if why := why or mpirun_problem():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    main()
