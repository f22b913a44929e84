"""The NCCL plugin, callback by callback: every version of the interface, and every way in which
NCCL is known to call plugins that nobody would expect."""
import unittest

from nccl_records import (
    ABANDONED,
    CAPTURED,
    DEGRADED,
    ENGINES,
    FAKE,
    IN_FLIGHT,
    LIBAON,
    MISSED,
    NCCL,
    NO_PEER,
    NO_WORK,
    ON,
    PLUGIN,
    REPLAYED,
    TIMED,
    UNCOUNTED,
    PluginTestCase,
    in_flight,
    nesting,
    operations,
    proxy_work,
)

RING, SIMPLE, FLOAT32, INT8 = 2, 3, 8, 1
CALL = "ncclAllReduce( )ncclAllReduce"
LAUNCH = "ncclGroupEnd( )ncclGroupEnd"


class Versions(PluginTestCase):
    def test_every_version_tells_the_same_of_every_function(self):
        for version in range(1, 8):
            with self.subTest(version=version):
                ring = self.ring_of("every", version)
                every = operations(ring)
                told = [(o.name, o.bytes, o.peer, o.algorithm, o.protocol) for o in every]
                self.assertEqual(
                    told,
                    [("ncclAllReduce", 4096, NO_PEER, RING, SIMPLE),
                     ("ncclAllGather", 4096, NO_PEER, RING, SIMPLE),
                     ("ncclReduceScatter", 4096, NO_PEER, RING, SIMPLE),
                     ("ncclBroadcast", 4096, 1, RING, SIMPLE),
                     ("ncclReduce", 4096, 1, RING, SIMPLE),
                     ("ncclSend", 4096, 1, 0, 0),
                     ("ncclRecv", 4096, 1, 0, 0)],
                )  # fmt: skip
                self.assertEqual([o.call for o in operations(ring)], list(range(7)))
                self.assertTrue(all(o.flags == 0 for o in operations(ring)))

    def test_the_call_says_the_type_where_it_is_seen(self):
        gathers = {v: self.operations_of("every", v)[1] for v in (4, 5, 7)}
        self.assertEqual([gathers[v].type for v in (4, 5, 7)], [INT8, FLOAT32, FLOAT32])

    def test_channels_are_told_by_those_versions_that_know_them(self):
        counts = {v: [o.channels for o in self.operations_of("every", v)] for v in (1, 4, 5)}
        self.assertEqual(counts, {1: [2] * 5 + [0] * 2, 4: [2] * 5 + [0] * 2, 5: [2] * 7})

    def test_communicators_have_size_rank_and_name_from_version_4_on(self):
        for version in (4, 5, 6, 7):
            (world,) = self.ring_of("every", version).communicators.values()
            told = (world.size, world.rank, world.kind, world.name, world.is_freed)
            self.assertEqual(told, (2, 0, 4, "world", True))
            (unnamed,) = self.ring_of("one_rank", version).communicators.values()
            self.assertEqual(unnamed.name, "commId 0xfeedc0de12345678")
        for version in (1, 2, 3):
            ring = self.ring_of("every", version)
            (unknown,) = ring.communicators.values()
            self.assertEqual((unknown.size, unknown.rank), (0, 0))
            self.assertEqual(ring.providers[-1][:2], (DEGRADED, "nccl"))
            self.assertEqual(ring.providers[-1][3], "NCCL 2.27 or later")

    def test_calls_and_launches_are_regions_from_version_5_on(self):
        self.assertEqual(nesting(self.ring_of("allreduce", 5, 2)), " ".join([CALL, LAUNCH] * 2))
        self.assertEqual(nesting(self.ring_of("allreduce", 4, 2)), "")
        ring = self.ring_of("allreduce", 7)
        self.assertEqual(set(ring.paradigms.values()), {NCCL})
        self.assertEqual(ring.providers, [(ON, "nccl", "", "")])


class Operations(PluginTestCase):
    def test_times_are_in_the_order_of_what_happened(self):
        ring = self.ring_of("allreduce", 7, 3)
        told = operations(ring)
        self.assertEqual([o.sequence for o in told], [0, 1, 2])
        begins = [r.start for r in ring.of_kind("begin") if r.name == "ncclAllReduce"]
        self.assertEqual([o.start for o in told], begins)
        for operation in told:
            self.assertLess(operation.start, operation.launch)
            self.assertLess(operation.launch, operation.end)
            self.assertEqual((operation.gpu_begin, operation.gpu, operation.skew), (0, 0, 0))

    def test_an_operation_is_96_bytes(self):
        for operation in self.operations_of("allreduce", 7, 5):
            self.assertEqual(32 + 8 * len(operation.record.words), 96)

    def test_transfers_are_counted_by_peer_and_direction(self):
        sends = self.operations_of("every", 7)[5:]
        self.assertEqual([(o.name, o.sequence) for o in sends], [("ncclSend", 0), ("ncclRecv", 0)])

    def test_so_are_those_of_threads_that_are_not_recorded(self):
        told = self.operations_of("slotless", 7, 1100)
        self.assertEqual([(o.call, o.sequence) for o in told], [(0, 0), (2, 2)])

    def test_a_group_may_hold_thousands(self):
        for level, flags in (("api", 0), ("gpu", TIMED)):
            told = self.operations_of("exchange", 7, 1500, AON_NCCL_LEVEL=level)
            self.assertEqual(sorted(o.call for o in told), list(range(6000)))
            self.assertEqual({o.flags for o in told}, {flags})
            sends = sorted((o.sequence, o.peer) for o in told if o.name == "ncclSend")
            self.assertEqual(sends, [(k, peer) for k in range(2) for peer in range(1500)])

    def test_a_communicator_of_one_rank_has_calls_only(self):
        told = self.operations_of("one_rank", 7, 3)
        self.assertEqual([(o.name, o.flags) for o in told], [("ncclAllReduce", NO_WORK)] * 3)

    def test_what_a_rank_sends_to_itself_is_one_operation_each(self):
        for level, version, flags in (("api", 7, 0), ("gpu", 7, TIMED), ("gpu", 5, 0)):
            ring = self.ring_of("self_transfers", version, 3, AON_NCCL_LEVEL=level)
            self.assertEqual(sorted((o.name, o.sequence, o.flags) for o in operations(ring)),
                             [(name, k, flags) for name in ("ncclRecv", "ncclSend")
                              for k in range(3)])
            if flags == 0:
                self.assertEqual(in_flight(ring), {})

    def test_nobody_waits_for_the_channels_of_what_a_rank_sends_to_itself(self):
        told = self.operations_of("exchange", 5, 8, AON_NCCL_LEVEL="gpu")  # of rank 0
        self.assertEqual({(o.peer == 0, o.flags) for o in told}, {(True, 0), (False, TIMED)})

    def test_many_operations_whose_channels_are_missing_are_all_told(self):
        told = self.operations_of("missing_channels", 7, 5000, AON_NCCL_LEVEL="gpu")
        self.assertEqual([o.sequence for o in sorted(told, key=lambda o: o.sequence)],
                         list(range(5000)))

    def test_two_ranks_in_a_process_are_two_members(self):
        ring = self.ring_of("two_ranks", 7, 4)
        first, second = ring.communicators.values()
        self.assertEqual(first.identity, second.identity)
        self.assertEqual((first.rank, second.rank), (0, 1))
        told = [o.communicator for o in operations(ring)]
        self.assertEqual(sorted(told), [first.id] * 4 + [second.id] * 4)

    def test_an_id_that_comes_again_is_another_communicator(self):
        ring = self.ring_of("communicators", 7, 3)
        told = list(ring.communicators.values())
        self.assertEqual(len(told), 32)
        self.assertEqual(len({c.identity for c in told}), 32)
        self.assertEqual({c.name for c in told}, {f"comm {t}" for t in range(4)})
        counts = {c.id: 0 for c in told}
        for operation in operations(ring):
            counts[operation.communicator] += 1
        self.assertEqual(set(counts.values()), {3})


class Loading(PluginTestCase):
    def test_by_its_name_and_preloaded(self):
        command = (FAKE, "allreduce", 7, 2)
        for how in ({"NCCL_PROFILER_PLUGIN": "aon", "LD_LIBRARY_PATH": PLUGIN.parent},
                    {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN", "LD_PRELOAD": f"{LIBAON} {PLUGIN}"}):
            ring = self.ring(*command, **how)
            self.assertEqual([o.sequence for o in operations(ring)], [0, 1], how)
            self.assertEqual(ring.providers, [(ON, "nccl", "", "")])

    def test_nccl_may_close_it_and_load_it_again(self):
        for level in ("api", "gpu"):
            ring = self.ring_of("reloaded", 7, 3, AON_NCCL_LEVEL=level)
            first, second = ring.communicators
            told = [(o.communicator, o.sequence) for o in operations(ring)]
            self.assertEqual(told, [(c, k) for c in (first, second) for k in range(3)])
            self.assertTrue(all(c.is_freed for c in ring.communicators.values()))


class CopyEngines(PluginTestCase):
    def test_their_collectives_are_told_with_numbers_of_their_own(self):
        for version in (6, 7):
            told = self.operations_of("copy_engines", version, 3)
            self.assertEqual(
                [(o.name, o.sequence, o.bytes, o.flags) for o in told[:-1]],
                [row for k in range(3) for row in (("ncclAllGather", k, 4096, ENGINES),
                                                   ("ncclAlltoAll", k, 256, ENGINES),
                                                   ("ncclAllGather", k, 64, 0))])  # fmt: skip
            self.assertEqual({(o.type, o.launch != 0) for o in told[:-1] if o.flags},
                             {(FLOAT32, False)})

    def test_what_a_graph_has_captured_did_not_run(self):
        told = self.operations_of("copy_engines", 7, 1)
        captured = CAPTURED | NO_WORK | UNCOUNTED
        self.assertEqual([o.flags for o in told], [ENGINES, ENGINES, 0, captured])

    def test_before_version_6_only_their_calls_are_told(self):
        told = self.operations_of("copy_engines", 5, 1)
        captured = CAPTURED | NO_WORK | UNCOUNTED
        self.assertEqual(sorted(o.flags for o in told), [0, NO_WORK, NO_WORK, captured])


class Refused(PluginTestCase):
    def test_operations_without_room_in_the_ring_are_summed_up(self):
        count = 20000  # of 96 bytes and four regions' ends each, in a MiB
        ring = self.ring_of("allreduce", 7, count, AON_MEMORY="1M")
        told = len(operations(ring))
        self.assertLess(0, told)
        self.assertLess(told, count)
        (communicator,) = ring.communicators
        sums = ring.nccl_sums[communicator, "ncclAllReduce", 22]
        self.assertEqual(sums[:2], (count - told, (count - told) << 22))
        self.assertGreater(sums[2], 0)
        self.assertEqual(sums[3:], (0,) * 5)

    def test_those_told_as_in_flight_are_summed_up_and_counted(self):
        count = 20000
        ring = self.ring_of("allreduce", 7, count, AON_MEMORY="1M", AON_NCCL_LEVEL="gpu")
        ended = {o.sequence for o in operations(ring)}
        begun = set(in_flight(ring).values())
        (communicator,) = ring.communicators
        key = communicator, "ncclAllReduce", 22
        self.assertEqual(ring.nccl_sums[key][0], count - len(ended))
        self.assertEqual(ring.nccl_sums_in_flight[key], len(begun - ended))
        self.assertLess(0, len(begun - ended))


class GpuTimes(PluginTestCase):
    def gpu(self, case, count=3, version=7):
        return self.operations_of(case, version, count, AON_NCCL_LEVEL="gpu")

    def test_the_channels_timers_become_times_of_the_process(self):
        for version in (4, 5, 6, 7):
            told = self.gpu("allreduce", 20, version)
            self.assertEqual([o.flags for o in told], [TIMED] * 20)
            for operation in told:
                self.assertGreater(operation.gpu, 45 * operation.skew)  # 51 us to 1 us
                self.assertLess(operation.gpu, 57 * operation.skew)
                # It began after its call, and its last timer was read before its end.
                self.assertGreater(operation.gpu_begin + operation.gpu, operation.start)
                self.assertLessEqual(operation.gpu_begin + operation.gpu, operation.end)

    def test_a_channel_that_is_not_told_of_is_missed(self):
        told = self.gpu("missing_channels")
        self.assertEqual([o.flags for o in told], [MISSED | TIMED] * 3)

    def test_stops_without_starts_and_without_timers_are_missed(self):
        self.assertEqual([o.flags for o in self.gpu("lone_stop")], [MISSED] * 3)
        self.assertEqual([o.flags for o in self.gpu("no_timer")], [MISSED] * 3)

    def test_more_in_flight_than_there_were_slots(self):
        told = self.gpu("allreduce", 500)
        self.assertEqual(sorted(o.sequence for o in told), list(range(500)))
        self.assertEqual({o.flags for o in told}, {TIMED})

    def test_an_nccl_without_timers_is_told_of(self):
        ring = self.ring_of("allreduce", 3, 2, AON_NCCL_LEVEL="gpu")
        self.assertEqual(len(operations(ring)), 2)
        self.assertEqual(ring.providers[-1][0], DEGRADED)
        self.assertIn("no times of the GPU", ring.providers[-1][2])


class InFlight(PluginTestCase):
    def test_what_never_ends_is_told_when_it_is_enqueued(self):
        ring = self.ring_of("killed", 7, 5, AON_NCCL_LEVEL="gpu")
        (communicator,) = ring.communicators
        told = {(communicator, k): k for k in range(5)}
        self.assertEqual(in_flight(ring), told)
        self.assertEqual(operations(ring), [])

    def test_without_times_on_the_gpu_nothing_is_in_flight(self):
        ring = self.ring_of("killed", 7, 5, AON_NCCL_LEVEL="api")
        self.assertEqual(in_flight(ring), {})
        self.assertEqual([o.sequence for o in operations(ring)], list(range(5)))


class GivenUp(PluginTestCase):
    """ncclCommAbort and exit() do not end what is on the GPU."""

    def assert_abandoned(self, ring, count):
        told = [o for o in operations(ring) if o.flags & ABANDONED]
        self.assertEqual([o.sequence for o in told], list(range(count)))
        self.assertEqual({o.flags for o in told}, {ABANDONED | IN_FLIGHT})
        begun = [r for r in ring.of_kind("nccl_call") if len(r.words) == 4]
        for before, after in zip(begun, told):
            self.assertGreaterEqual(after.end, before.end)

    def test_an_aborted_communicator_leaves_its_operations_in_flight(self):
        _, (ring,) = self.rings_of("aborted", 7, 3, AON_NCCL_LEVEL="gpu")
        self.assert_abandoned(ring, 3)

    def test_so_does_exit(self):
        done, (ring,) = self.rings_of("left", 7, 3, AON_NCCL_LEVEL="gpu")
        self.assertEqual(done.returncode, 3)
        self.assert_abandoned(ring, 3)

    def test_without_channels_nothing_is_known_of_that(self):
        _, (ring,) = self.rings_of("aborted", 7, 3, AON_NCCL_LEVEL="api")
        self.assertEqual([o.flags for o in operations(ring)], [0] * 3)


    def test_nobody_waits_for_channels_that_were_not_asked_for_when_a_group_began(self):
        ring = self.ring_of("relevelled", 5, AON_NCCL_LEVEL="gpu")
        told = sorted(operations(ring), key=lambda o: o.call)
        pairs = [{o.flags for o in told[i : i + 2]} for i in range(0, 10, 2)]
        self.assertEqual(pairs, [{TIMED}, {0}, {0}, {0}, {TIMED}])
        # Those whose channels were asked for are told so when their group ends before they do; the
        # others would be in any case, if they were waited for.
        self.assertLessEqual({call for _, call in in_flight(ring)}, {0, 1, 8, 9})

    def test_each_library_of_a_program_has_a_mask_of_its_own(self):
        done, (ring,) = self.rings_of("libraries", 5, AON_NCCL_LEVEL="gpu")
        self.assertEqual(done.stdout, "f06 f06 1f46\n")
        self.assertEqual([o.flags for o in operations(ring)], [0] * 3)

    def test_a_graph_keeps_the_level_at_which_it_was_captured(self):
        ring = self.ring_of("graph_relevelled", 5, 3, AON_NCCL_LEVEL="gpu")
        flags = [o.flags for o in sorted(operations(ring), key=lambda o: o.call)]
        captured = CAPTURED | NO_WORK
        self.assertEqual(flags, [captured, 0, captured | UNCOUNTED, *[REPLAYED | UNCOUNTED] * 3,
                                 *[REPLAYED | TIMED] * 3, 0, 0])  # fmt: skip
        self.assertLessEqual({call for _, call in in_flight(ring)}, {6, 7, 8})

    def test_nobody_waits_for_channels_that_somebody_took_from_the_mask(self):
        ring = self.ring_of("unmasked", 7, 2, AON_NCCL_LEVEL="gpu")
        flags = [o.flags for o in sorted(operations(ring), key=lambda o: o.call)]
        self.assertEqual(flags, [TIMED] * 2 + [0] * 2 + [TIMED] * 2)
        self.assertLessEqual({call for _, call in in_flight(ring)}, {0, 1, 4, 5})


class Proxy(PluginTestCase):
    def work(self, case, level, version=7, count=1):
        ring = self.ring_of(case, version, count, AON_NCCL_LEVEL=level)
        return ring, [w for w in proxy_work(ring) if not w.is_before_data]  # of a busy machine

    def test_what_sends_wait_for_the_first_data_stands_apart(self):
        told = proxy_work(self.ring_of("late_data", 7, 1, AON_NCCL_LEVEL="step"))
        self.assertEqual(len(told), 6)
        for channel in range(2):
            first, rest = [w for w in told if w.is_send and w.channel == channel]
            self.assertTrue(first.is_before_data and not first.is_last and rest.is_last)
            self.assertEqual((first.ready, first.network, first.bytes, rest.steps), (0, 0, 0, 4))
            self.assertEqual((first.name, rest.name), ("NCCL proxy", "NCCL proxy steps"))
            self.assertGreaterEqual(first.longest, 20_000_000)
            self.assertGreaterEqual(first.gpu, 80_000_000)  # four side by side

    def test_level_net_has_a_record_per_operation_channel_and_direction(self):
        for version in range(4, 8):
            ring, told = self.work("proxy", "net", version, 3)
            self.assertEqual(len(operations(ring)), 3)
            self.assertEqual(
                sorted((w.call, w.channel, w.is_send) for w in told),
                [(call, channel, send) for call in range(3) for channel in range(2)
                 for send in (False, True)])  # fmt: skip
            for work in told:
                self.assertEqual((work.name, work.peer, work.planned), ("NCCL proxy", 1, 4))
                self.assertEqual((work.is_last, work.steps, work.bytes), (True, 0, 0))

    def test_level_step_tells_what_the_steps_waited_for(self):
        for version in (4, 7):
            ring, told = self.work("proxy", "step", version)
            self.assertEqual(len(told), 4)
            for work in told:
                self.assertEqual((work.name, work.steps), ("NCCL proxy steps", 4))
                self.assertEqual((work.bytes, work.events), (4 * 4096, 4))
                # 1 ms of each step for the network, at least, in ticks of 1 ns or less.
                self.assertGreaterEqual(work.network, 4_000_000)
                self.assertGreater(work.gpu, 0)
                self.assertEqual(work.ready > 0, work.is_send)
                self.assertEqual(work.flush > 0, not work.is_send)
                self.assertGreaterEqual(work.longest * 4, work.network)
                waits = work.network + work.gpu + work.flush + work.ready
                duration = work.record.end - work.record.start
                self.assertLessEqual(waits, 4 * duration)  # side by side
                self.assertGreater(waits, duration)

    def test_level_gpu_has_none(self):
        self.assertEqual(self.work("proxy", "gpu")[1], [])

    def test_old_versions_have_no_such_level(self):
        ring, told = self.work("proxy", "step", 3)
        self.assertEqual((len(told), len(operations(ring))), (0, 1))

    def test_stops_that_never_come_lose_nothing_that_was_told(self):
        ring, told = self.work("lost_steps", "step")
        self.assertEqual(len(operations(ring)), 1)
        self.assertEqual(sum(w.steps for w in told), 4 * 20)
        self.assertFalse(any(w.is_last for w in told))
        self.assertEqual(sorted(w.steps for w in told), [4] * 4 + [16] * 4)

    def test_work_for_other_processes_is_declined_and_counted(self):
        ring, told = self.work("foreign_proxy", "step", 7, 3)
        self.assertEqual((told, len(operations(ring))), ([], 3))
        state, _, reason, _ = ring.providers[-1]
        self.assertEqual(state, DEGRADED)
        self.assertIn("12 pieces of the proxies' work", reason)
        self.assertIn("(PXN)", reason)


class Oddities(PluginTestCase):
    def test_a_call_that_stops_twice_ends_once(self):
        ring = self.ring_of("double_stop", 7, 3)
        self.assertEqual(nesting(ring), " ".join([CALL, LAUNCH] * 3))
        self.assertEqual([o.flags for o in operations(ring)], [0] * 3)

    def test_a_call_that_never_stops_ends_with_the_next(self):
        ring = self.ring_of("missing_stop", 7, 2)
        self.assertEqual(
            nesting(ring), f"ncclAllReduce( {LAUNCH} )ncclAllReduce ncclAllReduce( {LAUNCH}"
        )
        self.assertEqual([o.flags for o in operations(ring)], [0] * 2)

    def test_calls_of_which_no_work_is_told_are_kept(self):
        for count in (3, 5000):
            told = self.operations_of("no_work", 7, count)
            self.assertEqual([o.call for o in told], list(range(count)))
            self.assertEqual({o.flags for o in told}, {NO_WORK})

    def test_junk_is_declined(self):
        for version in range(1, 8):
            with self.subTest(version=version):
                done, (ring,) = self.rings_of("junk", version, AON_NCCL_LEVEL="gpu")
                self.assert_exit(done)
                lines = done.stdout.split("\n")
                self.assertEqual(lines[0], "init 1")
                self.assertEqual(lines[1:3], ["null context (nil)", "null event (nil)"])
                self.assertEqual(lines[3:7], ["foreign (nil)"] * 4)
                self.assertEqual(len(operations(ring)), 1)
                state, _, reason, _ = ring.providers[-1]
                self.assertEqual(state, DEGRADED)
                self.assertIn("1 operations are not recorded", reason)

    def test_programs_that_do_not_destroy_their_communicators(self):
        told = self.operations_of("no_finalize", 7, 10)
        self.assertEqual(sorted(o.call for o in told), list(range(10)))
        self.assertEqual(sorted(o.flags for o in told), [0] * 5 + [NO_WORK] * 5)

    def test_the_mask_is_switched_at_any_time(self):
        told = self.operations_of("toggled", 7, 9)
        self.assertEqual([(o.call, o.flags) for o in told], [(i, 0) for i in range(5)])

    def test_communicators_without_a_place_are_told_of(self):
        ring = self.ring_of("crowd", 7)
        self.assertEqual(len(operations(ring)), 1024)
        state, _, reason, remedy = ring.providers[-1]
        self.assertEqual(state, DEGRADED)
        self.assertIn("6 operations are not recorded", reason)
        self.assertIn("destroy communicators", remedy)

    def test_a_child_has_nothing_of_its_parent(self):
        done, rings = self.rings_of("fork", 7)
        self.assert_exit(done)
        self.assertEqual(done.stdout, "child 0\n")
        names = [[c.name for c in r.communicators.values()] for r in rings]
        told = sorted(zip([len(operations(r)) for r in rings], names))
        self.assertEqual(told, [(2, ["child"]), (2, ["world"])])

    def test_a_pause_skips_calls_and_leaves_nothing_behind(self):
        ring = self.ring_of("paused", 7, 100)
        self.assertEqual(nesting(ring), " ".join([CALL, LAUNCH] * 3))
        self.assertEqual([o.call for o in operations(ring)], [0, 101, 102])

    def test_levels_that_do_not_exist_are_told_of(self):
        ring = self.ring_of("allreduce", 7, AON_NCCL_LEVEL="gpus")
        self.assertEqual(ring.providers[-1][0], DEGRADED)
        self.assertIn("no such level", ring.providers[-1][2])
        self.assertEqual(len(operations(ring)), 1)

    def test_all_that_went_wrong_is_told(self):
        """A level that this NCCL does not have, members it does not tell, no plugin to chain to,
        and what got lost: one does not hide the other."""
        ring = self.ring_of("crowd", 1, AON_NCCL_LEVEL="gpu", AON_NCCL_CHAIN="/nowhere.so")
        state, _, reason, remedy = ring.providers[-1]
        self.assertEqual(state, DEGRADED)
        for part in ("level api is used", "does not say who is in a communicator",
                     "AON_NCCL_CHAIN: /nowhere.so", "6 operations are not recorded"):  # fmt: skip
            self.assertIn(part, reason)
        for part in ("the path of a profiler plugin", "destroy communicators"):
            self.assertIn(part, remedy)
        self.assertEqual(remedy.count("NCCL 2.27 or later"), 1)

    def test_off_stays_off_whatever_else_is_told(self):
        ring = self.ring_of("allreduce", 7, AON_NCCL_LEVEL="off", AON_NCCL_CHAIN="/nowhere.so")
        state, _, reason, _ = ring.providers[-1]
        self.assertEqual(state, 0)
        self.assertIn("AON_NCCL_CHAIN: /nowhere.so", reason)

    def test_off_is_off(self):
        ring = self.ring_of("allreduce", 7, AON_NCCL_LEVEL="off")
        self.assertEqual(operations(ring), [])
        self.assertEqual(ring.providers, [(0, "nccl", "AON_NCCL_LEVEL is off",
                                           "another --nccl-level or AON_NCCL_LEVEL")])  # fmt: skip


if __name__ == "__main__":
    unittest.main(verbosity=2)
