"""Another profiler plugin behind ours (AON_NCCL_CHAIN): each is told what it would be alone."""
import unittest

from nccl_records import (BUILD, CAPTURED, DEGRADED, NO_WORK, ON, REPLAYED, UNCOUNTED,
                          PluginTestCase, nesting, operations, proxy_work)

FOLDER = BUILD / "lib" / "fake_nccl"
RECORDER = FOLDER / "libnccl-profiler-recorder.so"


class Chain(PluginTestCase):
    def chained(self, case="allreduce", version=7, count=2, **changes):
        changes.setdefault("AON_NCCL_CHAIN", RECORDER)
        done, (ring,) = self.rings_of(case, version, count, **changes)
        self.assert_exit(done)
        return done.stdout.splitlines(), ring

    def test_both_are_told_what_they_ask_for(self):
        # Group 1, Coll 2, GroupApi 256, CollApi 512
        once = ["start 256 in 0", "state 256 23", "start 512 in 256", "stop 512", "state 256 24",
                "start 1 in 0", "start 2 in 512", "stop 2", "stop 1", "stop 256"]  # fmt: skip
        for version in (5, 7):
            lines, ring = self.chained(version=version)
            self.assertEqual(lines, ["init world 0 of 2 1", *once, *once, "finalize 8"])
            alone = self.ring_of("allreduce", version, 2)
            self.assertEqual(nesting(ring), nesting(alone))
            told = [(o.name, o.sequence, o.flags, o.bytes) for o in operations(ring)]
            self.assertEqual(told, [(o.name, o.sequence, o.flags, o.bytes)
                                    for o in operations(alone)])  # fmt: skip
            self.assertEqual(ring.providers, [(ON, "nccl", "", "")])

    def test_a_mask_written_at_the_first_init_alone_holds_for_all_communicators(self):
        lines, ring = self.chained("two_ranks", RECORDER_ONCE=1, RECORDER_MASK="66")
        # Of each operation GroupApi, CollApi, Group, Coll and two channels.
        self.assertEqual([line for line in lines if "finalize" in line], ["finalize 12"] * 2)
        self.assertEqual(len(operations(ring)), 4)

    def test_another_nccl_in_the_program_with_another_version_is_not_told_to_it(self):
        lines, ring = self.chained("libraries", 5, AON_NCCL_LEVEL="gpu")
        self.assertEqual([line.split()[1] for line in lines if "init" in line], ["world", "other"])
        self.assertEqual(len([line for line in lines if "finalize" in line]), 2)
        self.assertEqual(len(operations(ring)), 3)
        self.assertIn("not told of another NCCL", ring.providers[-1][2])

    def test_one_written_later_holds_from_the_next_group_on(self):
        lines, _ = self.chained(count=3, RECORDER_ONCE=1, RECORDER_LATER="66")
        self.assertEqual((lines.count("start 2 in 512"), lines.count("start 64 in 2")), (3, 2 * 2))
        lines, ring = self.chained(count=3, RECORDER_MASK="66", RECORDER_LATER="0")
        self.assertEqual([line for line in lines if "start" in line], ["start 256 in 0"])
        self.assertEqual([o.flags for o in operations(ring)], [0] * 3)

    def test_ends_that_come_too_late_are_told_of(self):
        """Of a group of 131 076 transfers, each of which is a call and work."""
        lines, ring = self.chained("exchange", count=65538, RECORDER_MASK="256", AON_MEMORY="64M")
        self.assertEqual((lines.count("start 256 in 0"), lines.count("stop 256")), (2, 0))
        self.assertEqual(ring.providers[-1][0], DEGRADED)
        self.assertRegex(ring.providers[-1][2],
                         r"AON_NCCL_CHAIN: \d+ ends of events were told to nobody")  # fmt: skip

    def test_channels_that_only_theirs_wants_do_not_change_ours(self):
        lines, ring = self.chained(RECORDER_MASK="64")
        self.assertEqual(lines.count("start 64 in 2"), 2 * 2)
        self.assertEqual(lines.count("state 64 22"), 2 * 2)
        self.assertEqual([o.flags for o in operations(ring)], [0, 0])

    def test_what_graphs_launch_is_counted_where_only_theirs_wants_channels(self):
        """NCCL counts by its mask, whoever has set that."""
        _, ring = self.chained("graph", count=3, RECORDER_MASK="66")
        told = sorted(operations(ring), key=lambda o: o.call)
        self.assertEqual([o.flags for o in told], [CAPTURED | NO_WORK, *[REPLAYED] * 3, 0])
        self.assertEqual([o.sequence for o in told[1:]], [0, 1, 2, 3])

    def test_a_graph_that_was_captured_long_ago_is_known(self):
        count = 140000  # Group and Coll each: more events than there are pairs of handles
        _, ring = self.chained("graph", count=count, RECORDER_MASK="2", AON_MEMORY="64M")
        told = sorted(operations(ring), key=lambda o: o.call)
        self.assertEqual(len(told), count + 2)
        self.assertEqual({o.flags for o in told[1:-1]}, {REPLAYED | UNCOUNTED})

    def test_channels_that_only_ours_wants_are_not_told_theirs(self):
        lines, ring = self.chained(AON_NCCL_LEVEL="gpu")
        self.assertFalse([line for line in lines if " 64" in line])
        self.assertEqual([o.gpu > 0 for o in operations(ring)], [True] * 2)

    def test_every_oddity_of_nccl_reaches_theirs_with_its_own_handles(self):
        for case in ("every", "double_stop", "missing_stop", "graph", "junk", "fork", "two_ranks",
                     "exchange", "communicators"):  # fmt: skip
            with self.subTest(case=case):
                done, _ = self.rings_of(case, 7, 3, AON_NCCL_CHAIN=RECORDER, RECORDER_MASK="4094",
                                        AON_NCCL_LEVEL="gpu")  # fmt: skip
                self.assert_exit(done)
                self.assertNotIn("BAD", done.stdout)
                self.assertIn("start 2 in 512" if case != "exchange" else "start 4 in 1024",
                              done.stdout)  # fmt: skip

    def test_it_is_told_where_ours_records_nothing(self):
        alone, _ = self.chained()
        lines, ring = self.chained(AON_NCCL_LEVEL="off")
        self.assertEqual(lines, alone)
        self.assertEqual((operations(ring), len(ring.providers)), ([], 1))
        # Without a place for a ring.
        done, rings = self.rings_of("allreduce", 7, 2, AON_NCCL_CHAIN=RECORDER, AON_OUTPUT="/proc")
        self.assert_exit(done)
        self.assertEqual((done.stdout.splitlines(), rings), (alone, []))

    def test_it_is_told_of_more_communicators_than_ours_has_places_for(self):
        lines, ring = self.chained("crowd")
        self.assertEqual(lines.count("finalize 4"), 1030)
        self.assertEqual(len(operations(ring)), 1024)
        self.assertIn("6 operations are not recorded", ring.providers[-1][2])

    def test_work_for_other_processes_reaches_it_without_context_and_parent(self):
        for level in ("api", "off", "step"):
            lines, ring = self.chained("foreign_proxy", RECORDER_MASK="154", AON_NCCL_LEVEL=level)
            # Of each operation two channels and directions, with four steps.
            self.assertEqual(lines.count("foreign 8 in 0"), 2 * 4)
            self.assertEqual(lines.count("foreign 16 in 8"), 2 * 4 * 4)
            self.assertEqual(lines.count("foreign 128 in 16"), 2 * 4 * 4)
            self.assertFalse([line for line in lines if "BAD" in line])

    def test_proxies_that_only_theirs_wants_are_not_recorded(self):
        lines, ring = self.chained("proxy", RECORDER_MASK="154")
        self.assertEqual(proxy_work(ring), [])
        self.assertEqual(len(operations(ring)), 2)
        # Of each operation two channels and directions, with four steps.
        self.assertEqual(lines.count("start 8 in 2"), 2 * 4)
        self.assertEqual(lines.count("start 16 in 8"), 2 * 4 * 4)
        self.assertEqual(lines.count("start 128 in 16"), 2 * 4 * 4)
        _, ring = self.chained("proxy", RECORDER_MASK="154", AON_NCCL_LEVEL="net")
        self.assertEqual([work.steps for work in proxy_work(ring)], [0] * 2 * 4)

    def test_it_is_found_by_its_name(self):
        lines, _ = self.chained(AON_NCCL_CHAIN="recorder", LD_LIBRARY_PATH=FOLDER)
        self.assertEqual(lines[0], "init world 0 of 2 1")

    def test_one_that_cannot_be_had_is_told_of_and_ours_goes_on(self):
        for version, name, reason, more in (
            (7, "/nowhere.so", "cannot open shared object file", {}),
            (6, RECORDER, "has no ncclProfiler_v6, which this NCCL uses", {}),
            (7, BUILD / "lib" / "libnccl-profiler-aon.so", "is AON's own", {}),
            (7, RECORDER, "lacks functions", {"RECORDER_HOLE": 1}),
        ):
            lines, ring = self.chained(version=version, AON_NCCL_CHAIN=name, **more)
            self.assertEqual(lines, [])
            self.assertEqual(len(operations(ring)), 2)
            state, _, told, _ = ring.providers[-1]
            self.assertEqual(state, DEGRADED)
            self.assertIn(reason, told)

    def test_one_whose_init_fails_is_told_of_and_ours_goes_on(self):
        lines, ring = self.chained(RECORDER_INIT=3)
        self.assertEqual(lines, ["init world 0 of 2 1"])
        self.assertEqual(len(operations(ring)), 2)
        state, _, told, _ = ring.providers[-1]
        self.assertEqual(state, DEGRADED)
        self.assertIn("its init failed (3)", told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
