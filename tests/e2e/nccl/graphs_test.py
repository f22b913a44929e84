"""The NCCL plugin and CUDA graphs: what is told when they are captured and each time they run."""
import unittest

from nccl_records import (
    CAPTURED,
    NO_WORK,
    REPLAYED,
    TIMED,
    UNCOUNTED,
    PluginTestCase,
    in_flight,
    operations,
)


class Graphs(PluginTestCase):
    def test_graphs_are_told_when_captured_and_each_time_they_run(self):
        told = sorted(self.operations_of("graph", 7, 3), key=lambda o: o.call)
        flags = [CAPTURED | NO_WORK | UNCOUNTED] + [REPLAYED | UNCOUNTED] * 3 + [0]
        self.assertEqual([o.flags for o in told], flags)
        self.assertEqual([o.sequence for o in told[1:]], [0, 0, 0, 0])
        told = self.operations_of("graph", 7, 3, AON_NCCL_LEVEL="gpu")
        told.sort(key=lambda o: o.call)
        flags = [CAPTURED | NO_WORK] + [REPLAYED | TIMED] * 3 + [TIMED]
        self.assertEqual([o.flags for o in told], flags)
        self.assertEqual([o.sequence for o in told[1:]], [0, 1, 2, 3])

    def test_nobody_waits_for_channels_of_symmetric_kernels_that_a_graph_launches(self):
        ring = self.ring_of("graph_symmetric", 7, 3, AON_NCCL_LEVEL="gpu")
        told = sorted(operations(ring), key=lambda o: o.call)
        flags = [CAPTURED | NO_WORK] + [REPLAYED] * 3 + [TIMED]
        self.assertEqual([o.flags for o in told], flags)
        self.assertEqual([call for _, call in in_flight(ring)], [4])

    def test_transfers_that_a_graph_launches_are_counted_where_both_ends_are_told(self):
        for level, numbers in (("api", [0, 0, 0, 0]), ("gpu", [0, 1, 2, 3])):
            told = self.operations_of("graph_send", 7, 3, AON_NCCL_LEVEL=level)
            told.sort(key=lambda o: o.call)
            self.assertEqual([o.sequence for o in told if not o.flags & CAPTURED], numbers)


if __name__ == "__main__":
    unittest.main(verbosity=2)
