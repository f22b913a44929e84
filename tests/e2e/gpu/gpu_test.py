"""MPI programs that use a GPU under aon-run, over a driver and a CUPTI that are made up
(tests/fake_cuda): what the program counted is what the archive and profile.h5 have."""
import collections
import re
import shutil
import subprocess
import time

import h5py
import otf2
from gpu_case import FAKES, KERNELS, PROGRAM, GpuCase, counts, gpu_environment, main, readers
from aon_test import environment, ledger, mpirun, profile, run


class Recorded(GpuCase):
    def test_every_kernel_copy_and_graph_is_on_its_stream(self):
        self.run_program(300, 3)
        self.assert_all_kernels()
        self.assert_archive_is_clean()
        self.assertEqual(self.provider()["state"], "on", self.provider())
        for rank, streams in self.streams().items():
            names = {f"CUDA[{rank % 2}:{stream}]" for stream in (7, 8, 9)}
            self.assertEqual(set(streams), names)
        for rank, counted in self.counted.items():
            copies = [r for r in self.table("copies") if r["rank"] == rank]
            by_kind = {r["kind"]: (r["count"], r["bytes"]) for r in copies}
            moved = [by_kind[f"[CUDA memcpy {kind}]"] for kind in ("HtoD", "DtoH")]
            self.assertEqual(sum(c for c, _ in moved), counted["copies"])
            self.assertEqual(sum(b for _, b in moved), counted["bytes"])
            self.assertEqual(by_kind["[CUDA memset]"][0], counted["sets"])
        self.assertEqual([r["count"] for r in self.table("graphs")], [1, 1])

    def test_copies_are_one_sided_communication_on_their_stream(self):
        """Host and streams of a process share a window, in which the host has rank 0."""
        self.run_program(50, 3)
        moved = collections.defaultdict(lambda: collections.Counter())
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            windows = list(trace.definitions.rma_wins)
            self.assertEqual([window.name for window in windows], ["CUDA_WINDOW"] * 2)
            roles = {region.region_role for region in trace.definitions.regions
                     if region.name.startswith("[CUDA memcpy")}
            self.assertEqual(roles, {otf2.RegionRole.DATA_TRANSFER})
            open_ids = collections.defaultdict(set)
            for location, event in trace.events:
                kind = type(event).__name__
                if kind in ("RmaPut", "RmaGet"):
                    self.assertEqual(location.type, otf2.LocationType.GPU)
                    self.assertEqual(event.remote, 0)
                    open_ids[location].add(event.matching_id)
                    rank = location.group.creating_location_group._ref
                    moved[rank][kind] += 1
                    moved[rank]["bytes"] += event.bytes
                elif kind == "RmaOpCompleteBlocking":
                    open_ids[location].remove(event.matching_id)
            self.assertFalse(any(open_ids.values()))
        for rank, counted in self.counted.items():
            self.assertEqual(moved[rank], {"RmaGet": 3, "RmaPut": 3, "bytes": counted["bytes"]})
        self.assert_archive_is_clean()

    def test_times_are_the_devices(self):
        self.run_program(100, 1)
        for row in self.table("kernels"):
            self.assertAlmostEqual(row["mean_ns"], 10_000, delta=100)
            self.assertEqual(row["total_ns"], round(row["mean_ns"] * row["count"]))
        # The device starts a kernel 2 us behind the end of its call, whenever that is.
        enter, leave = {}, {}
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                rank = location._ref & 0xFFFFFFFF
                if isinstance(event, otf2.events.Enter):
                    enter.setdefault((rank, event.region.name), event.time)
                elif isinstance(event, otf2.events.Leave):
                    leave.setdefault((rank, event.region.name), event.time)
        for rank in (0, 1):
            first = min(enter[rank, name] for name in KERNELS)
            self.assertGreater(first, enter[rank, "cuLaunchKernel"])
            self.assertAlmostEqual(first, leave[rank, "cuLaunchKernel"] + 2000, delta=1000)

    def test_kernels_tell_how_they_were_launched_and_how_long_they_took(self):
        self.run_program(30, 1, ranks=1)
        for row in self.table("kernels"):
            self.assertEqual([tuple(row[c]) for c in ("grid", "block")], [(8, 4, 1), (128, 1, 1)])
            self.assertEqual((row["registers"], row["shared_bytes"]), (32, 256))
            self.assertEqual(row["shape_count"], row["count"])
            self.assertEqual((row["min_blocks"], row["max_blocks"]), (32, 32))
            self.assertEqual(row["histogram"][13], row["count"], "8 to 16 us")
            self.assertEqual(sum(row["histogram"]), row["count"])
        self.assertEqual(sum(self.table("graphs")[0]["histogram"]), 1)

    def test_threads_have_buffers_of_their_own(self):
        self.run_program(20_000, 4, 1, ranks=1, AON_MEMORY="64MiB")
        self.assert_all_kernels()
        self.assert_law(ledger(self.output))
        self.assertEqual(ledger(self.output)["ranks"][0]["lost"], 0)

    def test_a_storm_of_threads_is_recorded_whole(self):
        """Each that launches holds a buffer until the next flush."""
        self.run_program(200, 64, 1, ranks=1, AON_MEMORY="64MiB")
        self.assertEqual(self.kernel_counts()[0], self.counted[0]["kernels"])
        self.assertEqual(self.provider()["state"], "on", self.provider())

    def test_calls_of_cuda_stand_on_a_timeline_of_their_thread(self):
        self.run_program(50, 1, ranks=1)
        found = readers.region_counts(self.output)
        self.assertEqual(found["cuLaunchKernel"], self.counted[0]["kernels"])
        self.assertEqual(found["cuGraphLaunch"], 1)

    def test_work_and_the_call_that_launched_it_have_one_id(self):
        self.run_program(100, 3)
        called, work = collections.defaultdict(list), collections.defaultdict(list)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if not isinstance(event, otf2.events.Enter):
                    continue
                told = {a.name: value for a, value in (event.attributes or {}).items()}
                rank = location._ref & 0xFFFFFFFF
                if location.name.startswith("CUDA calls"):
                    called[rank].append((told["correlation"], event.region.name))
                elif event.region.name in KERNELS or "memcpy" in event.region.name:
                    work[rank].append((told["correlation"], event.region.name))
        for rank, counted in self.counted.items():
            self.assertEqual(len(work[rank]), counted["kernels"] + counted["copies"])
            calls = dict(called[rank])
            self.assertEqual(len(calls), len(called[rank]))
            for correlation, name in work[rank]:
                self.assertRegex(calls[correlation], "Launch" if name in KERNELS else "Memcpy")

    def test_each_thread_waits_on_a_timeline_of_its_own(self):
        self.run_program(200, 4, 1, ranks=1, GPU_PROGRAM_WAITS=1)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            names = [location.name for location in trace.definitions.locations]
        rows = [name for name in names if name.startswith("CUDA synchronization of thread ")]
        self.assertEqual(len(rows), 5, names)  # four threads and the main one
        self.assertFalse([name for name in names if "of context" in name], names)
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(file["gpu"].attrs["overlapping"], 0)

    def test_work_under_a_pause_of_mpi_is_not_recorded(self):
        self.run_program(50, 1, ranks=1, GPU_PROGRAM_PCONTROL=30)
        self.assertNotIn("paused", readers.region_counts(self.output))
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            roles = {region.name: region.region_role for region in trace.definitions.regions}
        self.assertEqual(roles["[GPU work not recorded: paused]"], otf2.RegionRole.ARTIFICIAL)
        self.assert_all_kernels()
        self.assertGreater(self.table("use")[0]["unrecorded_ns"], 40_000_000)
        self.assert_archive_is_clean()

    def test_buffers_can_be_kept_for_a_test(self):
        fixtures = self.folder / "fixtures"
        self.run_program(20, 1, options=("--record-fixture", fixtures))
        files = sorted(fixtures.iterdir())
        self.assertEqual(len(files), 2, files)
        for file in files:
            content = file.read_bytes()
            self.assertEqual(content[:8], b"AONCUPTI")
            self.assertIn(b"_Z5saxpyPfS_fi", content)

    def test_a_folder_for_buffers_that_cannot_be_is_told_before_the_start(self):
        (self.folder / "file").write_text("")
        done = profile(1, self.folder / "job", PROGRAM, 1, 1, env=gpu_environment(),
                       options=("--record-fixture", self.folder / "file" / "below"))
        self.assertIn("--record-fixture: cannot write into", done.stderr)
        self.assertNotIn("rank 0", done.stdout)

    def test_a_folder_for_buffers_without_cupti_is_told_before_the_start(self):
        kept = self.folder / "kept"
        for options in (("--without", "cupti"), ("--cupti-mode", "off")):
            done = run(["aon-run", *options, "--record-fixture", kept, "--", PROGRAM, 1, 1])
            self.assert_exit(done, 2)
            self.assertIn("--record-fixture keeps what CUPTI tells", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertFalse(kept.exists())

    def test_vite_draws_it(self):
        self.run_program(20, 2)
        readers.vite(self, self.output, 2, 0)


class Knobs(GpuCase):
    """What goes wrong in CUPTI hurts no program and is told."""

    def test_buffers_in_any_order_are_put_in_order(self):
        self.run_program(15_000, 1, ranks=1, FAKE_CUPTI_REORDER=1, AON_MEMORY="64MiB")
        self.assert_all_kernels()
        self.assert_archive_is_clean()

    def test_work_without_times_is_counted(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_ZERO=10)
        provider = self.provider()
        self.assertEqual(provider["state"], "degraded")
        without = int(re.search(r"(\d+) without times", provider["reason"]).group(1))
        recorded = self.kernel_counts()[0]
        rows = self.table("copies") + self.table("graphs")
        told = recorded + sum(r["count"] for r in rows)
        done = sum(self.counted[0][k] for k in ("kernels", "copies", "sets", "graphs"))
        self.assertEqual(done + 1, told + without + self.waits())

    def test_times_that_cannot_be_are_no_work(self):
        """One that ends in a year would make the job last as long."""
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_ABSURD=10)
        self.assertRegex(self.provider()["reason"], r"\b10 damaged")
        self.assertLess(max(row["max_ns"] for row in self.table("kernels")), 10**12)
        self.assertLess(sum(self.kernel_counts()), self.counted[0]["kernels"])
        self.assert_archive_is_clean()

    def test_nor_are_they_behind_the_first_buffer(self):
        self.run_program(3000, 1, ranks=1, FAKE_CUPTI_ABSURD=10, AON_MEMORY="64MiB")
        self.assertRegex(self.provider()["reason"], r"\b30\d damaged")
        self.assertLess(self.table("use")[0]["span_ns"], 10**12)

    def waits(self):
        return readers.region_counts(self.output).get("[CUDA context synchronize]", 0)

    def test_records_that_cupti_dropped_are_counted(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_DROP=10)
        provider = self.provider()
        self.assertEqual(provider["state"], "degraded")
        self.assertRegex(provider["reason"], r"\b10 records dropped by CUPTI")

    def test_a_full_pool_refuses_where_the_version_may(self):
        self.run_program(30_000, 1, ranks=1, AON_CUPTI_MEMORY=2, FAKE_CUPTI_HOLD=1,
                         AON_MEMORY="64MiB")
        dropped = int(re.search(r"(\d+) records dropped", self.provider()["reason"]).group(1))
        self.assertGreater(dropped, 0)
        self.assertIn("--cupti-memory", self.provider()["remedy"])
        self.assert_law(ledger(self.output))

    def test_a_refused_buffer_is_a_flush_at_once(self):
        """Two threads hold both buffers, the third and all behind it get none before a flush."""
        flushes = self.folder / "flushes"
        self.run_program(10, 12, 1, ranks=1, AON_CUPTI_MEMORY=2, GPU_PROGRAM_SECONDS=1,
                         FAKE_CUPTI_FLUSHES=flushes)
        self.assertIn("records dropped for want of a buffer", self.provider()["reason"])
        many = flushes.stat().st_size
        flushes.unlink()
        self.run_program(10, 12, 1, ranks=1, GPU_PROGRAM_SECONDS=1, FAKE_CUPTI_FLUSHES=flushes)
        self.assertGreater(many, flushes.stat().st_size)

    def test_a_full_pool_throws_away_where_the_version_may_not_refuse(self):
        self.run_program(30_000, 1, ranks=1, AON_CUPTI_MEMORY=2, FAKE_CUPTI_HOLD=1,
                         FAKE_CUPTI_VERSION=24, AON_MEMORY="64MiB")
        self.assertRegex(self.provider()["reason"], r"[1-9]\d* bytes of records beyond")

    def test_an_occupied_subscription_names_its_owner(self):
        self.run_program(10, 1, FAKE_CUPTI_BUSY="Nsight Systems")
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("Nsight Systems", self.provider()["reason"])
        self.assert_archive_is_clean()

    def test_an_error_of_cupti_is_told(self):
        self.run_program(10, 1, FAKE_CUPTI_ERROR="cuptiSubscribe:1")
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("cuptiSubscribe: error 999", self.provider()["reason"])

    def test_releases_of_a_context_are_not_each_a_flush(self):
        """UCX does two hundred a second and more, in the thread that moves data."""
        flushes = self.folder / "flushes"
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_RELEASES=200, FAKE_CUPTI_FLUSHES=flushes)
        self.assertLess(flushes.stat().st_size, 20)
        lost = sum(self.kernel_counts().values()) < self.counted[0]["kernels"]
        told = "a context ended within 0.5 s" in self.provider()["reason"]
        self.assertTrue(told or not lost, self.provider())

    def test_calls_that_nobody_asked_for_are_not_each_a_flush(self):
        """As CUPTI may tell them: none of them ends a context."""
        flushes = self.folder / "flushes"
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_UNASKED=1, FAKE_CUPTI_FLUSHES=flushes)
        self.assertLess(flushes.stat().st_size, 20)
        self.assert_all_kernels()

    def test_the_last_release_of_a_context_takes_no_records_along(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_RELEASES=1)
        self.assert_all_kernels()

    def test_a_kind_that_cannot_be_recorded_is_named(self):
        self.run_program(10, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiActivityEnable:3")
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertEqual(self.provider()["reason"], "not recorded: copies")
        self.assertEqual(self.kernel_counts()[0], 10)

    def test_a_program_that_launches_all_the_time_is_flushed_twice_a_second(self):
        flushes = self.folder / "flushes"
        start = time.monotonic()
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, FAKE_CUPTI_FLUSHES=flushes)
        seconds = time.monotonic() - start
        self.assert_all_kernels()
        # And a few at the end. Without a clock of its own each flush would bring about the next.
        self.assertLess(flushes.stat().st_size, 2 * seconds + 6)

    def test_a_version_that_gets_slow_by_calls_is_asked_for_less(self):
        times = self.folder / "times"
        start = time.monotonic()
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, FAKE_CUPTI_TIMES=times,
                         FAKE_CUPTI_VERSION=130200)
        self.assert_all_kernels()
        self.assertLess(times.stat().st_size, 2 * (time.monotonic() - start) + 6)

    def test_a_failed_flush_costs_nothing_for_ever(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiActivityFlushAll:1")
        self.assert_all_kernels()

    def test_a_fatal_error_ends_the_recording_and_says_so(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_FATAL=50)
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("fatal error", self.provider()["reason"])

    def test_after_a_fatal_error_the_thread_rests(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_FATAL=50, GPU_PROGRAM_REST=1)
        told = re.search(r"drain cpu_ns (\d+) sleeps (\d+)", self.process.stdout)
        self.assertLess(int(told[1]), 200_000_000)
        self.assertLess(int(told[2]), 40)

    def test_a_program_that_dies_takes_its_last_work_along_and_that_is_told(self):
        for how in ("9", "0"):
            with self.subTest(how):
                self.output = self.folder / f"job{how}"
                profile(1, self.output, PROGRAM, 100, 1, env=gpu_environment(
                    GPU_PROGRAM_SECONDS=2, GPU_PROGRAM_END=how))
                self.assertEqual(self.provider()["state"], "degraded")
                self.assertIn("last half second", self.provider()["reason"])

    def test_a_device_that_is_reset_takes_no_records_along(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_SECONDS=1, GPU_PROGRAM_RESET=1)
        self.assert_all_kernels()

    def test_calls_that_cannot_be_switched_on_are_told(self):
        self.run_program(10, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiActivityEnableDriverApi:1")
        self.assertEqual(self.provider()["reason"], "not recorded: calls of CUDA (1 functions)")
        self.assert_all_kernels()

    def test_one_reason_does_not_hide_another(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiActivityEnable:3",
                         FAKE_CUPTI_ZERO=10, GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield")
        reason = self.provider()["reason"]
        for part in ("not recorded: copies", "paused by the program", " without times"):
            self.assertIn(part, reason)

    def test_a_version_that_hangs_when_kinds_are_disabled_ends_all_the_same(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_VERSION=130000)
        self.assert_all_kernels()

    def test_a_version_that_crashes_on_graphs_records_them_node_by_node(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_VERSION=23)
        recorded = {row["name"]: row["count"] for row in self.table("kernels")}
        self.assertEqual(recorded.pop("graph_node"), 1)
        self.assertEqual(sum(recorded.values()), 100)
        self.assertEqual(self.provider()["state"], "on", self.provider())
        self.assertIn("node by node", self.provider()["reason"])

    def test_what_a_version_does_not_tell_is_said(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_VERSION=130000)
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("does not tell of waiting", self.provider()["reason"])
        self.assertIn("may crash when records are flushed", self.provider()["reason"])
        self.assertEqual(self.provider()["remedy"], "CUDA 13.0.1")

    def test_graphs_have_no_call_where_the_version_confuses_them(self):
        for version, unknown in ((130100, 1), (130101, 0)):
            self.run_program(100, 1, ranks=1, GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield",
                             FAKE_CUPTI_VERSION=version)
            self.assertEqual(self.table("use")[0]["unknown_launches"], unknown, version)
            shutil.rmtree(self.output)

    def test_a_cupti_that_tells_of_no_work_is_told(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_BLIND=1)
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertRegex(self.provider()["reason"], r"launched work 101 times .* told of none")
        self.assertIn("LD_LIBRARY_PATH", self.provider()["remedy"])

    def test_launches_into_captures_are_no_silence(self):
        """Nothing has run, so there is nothing to tell; what runs beside them is told of."""
        for kernels, told in ((0, None), (30, "launched work 30 times")):
            self.run_program(kernels, 1, ranks=1, FAKE_CUPTI_BLIND=1, GPU_PROGRAM_GRAPHLESS=1,
                             GPU_PROGRAM_CAPTURES=50)
            if told is None:
                self.assertEqual(self.provider()["state"], "on", self.provider())
            else:
                self.assertIn(told, self.provider()["reason"])
            shutil.rmtree(self.output)

    def test_a_capture_without_an_end_hides_no_silence_of_others(self):
        """Of another thread, or its end falls into a pause."""
        for threads, settings in ((1, {}), (0, {"GPU_PROGRAM_PAUSE": 30})):
            self.run_program(100, 1, threads, ranks=1, FAKE_CUPTI_BLIND=1, GPU_PROGRAM_GRAPHLESS=1,
                             GPU_PROGRAM_LEFT_OPEN=1, AON_CUPTI_MODE="yield", **settings)
            self.assertIn("launched work 100 times", self.provider()["reason"])
            shutil.rmtree(self.output)

    def test_a_child_leaves_the_recording_alone(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_FORK=1)
        self.assert_all_kernels()

    def test_in_mode_yield_a_program_may_have_cupti_for_itself(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield")
        self.assertIn("paused 1\nresumed 1\n", self.process.stdout)
        self.assert_all_kernels()
        found = readers.region_counts(self.output)
        self.assertNotIn("unseen", found)
        self.assertGreaterEqual(found["[GPU work not recorded: paused]"], 1)
        self.assertGreater(self.table("use")[0]["unrecorded_ns"], 0)
        self.assertIn("graphs are recorded node by node since", self.provider()["reason"])

    def test_what_cannot_be_taken_back_is_said(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield",
                         FAKE_CUPTI_ERROR="cuptiSubscribe:2")
        self.assertIn("paused 1\nresumed 0\n", self.process.stdout)
        self.assertIn("cuptiSubscribe", self.provider()["reason"])

    def test_in_mode_exclusive_nobody_may(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_PAUSE=30)
        self.assertIn("paused 0\n", self.process.stdout)
        self.assertEqual(readers.region_counts(self.output)["unseen"], 30)

    def test_off_is_off(self):
        self.run_program(10, 1, AON_CUPTI_MODE="off")
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("AON_CUPTI_MODE", self.provider()["reason"])

    def test_without_the_provider_nothing_is_loaded(self):
        self.run_program(10, 1, options=("--without", "cupti"))
        self.assertEqual(self.provider()["reason"], "excluded by --without")

    def test_without_cupti_the_remedy_is_told(self):
        """The driver alone, in a folder without libcupti. Where the loader finds NVIDIA's, that one
        says why it cannot work over this driver."""
        alone = self.folder / "alone"
        alone.mkdir()
        (alone / "libcuda.so.1").symlink_to(FAKES / "libcuda.so.1")
        known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
        self.output = self.folder / "job"
        done = profile(1, self.output, PROGRAM, 10, 1, env=environment(LD_LIBRARY_PATH=alone))
        self.assert_exit(done)
        self.assertEqual(self.provider()["state"], "off")
        if "libcupti.so.1" in known:
            self.assertIn("cuptiSubscribe: error", self.provider()["reason"])
        else:
            self.assertIn("LD_LIBRARY_PATH", self.provider()["remedy"])

    def test_the_program_says_the_same_without_us(self):
        plain = mpirun(2, PROGRAM, 40, 2, env=gpu_environment())
        self.assert_exit(plain)
        self.run_program(40, 2)
        self.assertEqual(self.counted, counts(plain))


if __name__ == "__main__":
    main()
