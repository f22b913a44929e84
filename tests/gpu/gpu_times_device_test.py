"""Kernels of a real GPU are as many as the program launched, also those of graphs, and take as long
as CUDA's events say, within 1 %. Runs on any machine with a GPU of NVIDIA and CUPTI; what it lacks
is skipped by its name (77)."""
import h5py
from device import LAUNCHES, gpu_environment, kernels, need, numbers, skip_without_device
from aon_test import TestCase, ledger, main, run

COUNT = 60
BURSTS = 20
NODES = 20
LIMIT = 0.01


def event_times(text):
    """{kernel: (count, ns)} that gpu_launches measured by events."""
    lines = [line.split() for line in text.splitlines()]
    return {line[0]: (int(line[1]), int(line[2])) for line in lines if len(line) == 3}


def largest_error(recorded, measured):
    """(error, what) of the sum of all times and of each kernel's, relative to the events'."""
    sums = {name: (recorded.get(name, (0, 0))[1], ns) for name, (_, ns) in measured.items()}
    sums["all"] = tuple(map(sum, zip(*sums.values())))
    return max((abs(ours / theirs - 1), name) for name, (ours, theirs) in sums.items())


class Times(TestCase):
    def record(self, *words, **variables):
        self.output = self.folder / "job"
        done = run(["aon-run", "-o", self.output, "--budget", "100", "--", LAUNCHES, *words],
                   env=gpu_environment(**variables))
        self.assert_exit(done)
        self.assert_exit(run(["aon", "finalize", "--quiet", self.output]))
        document = ledger(self.output)
        need("cupti", document["ranks"][0]["providers"]["cupti"])
        self.assert_law(document)
        return done.stdout

    def test_kernels_take_as_long_as_events_say(self):
        told = self.record("events", COUNT)
        measured = event_times(told)
        recorded = kernels(self.output)
        print(measured, recorded)
        self.assertEqual({n: c for n, (c, _) in recorded.items()},
                         {"hold": numbers(told)["hold"],
                          **{n: c for n, (c, _) in measured.items()}})
        error, name = largest_error(recorded, measured)
        print(f"largest error {100 * error:.3f} %, {name}")
        self.assertLess(error, LIMIT, name)

    def test_every_launch_of_a_storm_is_there(self):
        told = numbers(self.record("launch", BURSTS))
        self.assertEqual(sum(count for count, _ in kernels(self.output).values()),
                         told["kernels"])

    def test_graphs_are_as_many_as_were_launched(self):
        told = numbers(self.record("graph", 10, NODES))
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(int(file["gpu/graphs/count"][:].sum()), told["graphs"])

    def test_kernels_of_graphs_are_there_node_by_node(self):
        told = numbers(self.record("graph", 10, NODES, AON_CUPTI_GRAPH="node"))
        self.assertEqual(sum(count for count, _ in kernels(self.output).values()),
                         told["kernels"])


if __name__ == "__main__":
    skip_without_device()
    main()
