"""What devices did and why they did nothing, what bounds them, and who launched what: /gpu/use,
/gpu/idle, /gpu/steps and /gpu/launches, and the findings. CUPTI and NVML are made up."""
import h5py
from gpu_case import FAKE_NVML, FAKES, GpuCase, main
from aon_test import ledger


class Use(GpuCase):
    """How devices were used, and who launched what."""

    def test_time_of_each_device_is_told_apart(self):
        self.run_program(200, 2)
        rows = self.table("use")
        self.assertEqual([(r["rank"], r["device"]) for r in rows], [(0, 0), (1, 1)])
        for row in rows:
            self.assertEqual(row["kernels"], self.counted[row["rank"]]["kernels"])
            begins = ("GPU-01010101-", "GPU-02020202-")
            self.assertTrue(row["uuid"].startswith(begins[row["device"]]))
            self.assertAlmostEqual(row["median_kernel_ns"], 10_000, delta=1000)
            self.assertEqual(row["unknown_launches"], 0)
            self.assertEqual(row["busy_ns"] + row["idle_ns"], row["span_ns"])
            why = row["host_wait_ns"] + row["launch_ns"] + row["starved_ns"]
            self.assertEqual(why, row["idle_ns"])
            self.assertGreater(row["compute_ns"], 0)
            self.assertGreater(row["copy_ns"], 0)
            self.assertEqual(row["communication_ns"], 0)

    def test_a_host_that_launches_too_late_is_named(self):
        """A kernel of 10 us each millisecond."""
        self.run_program(1, 1, ranks=1, GPU_PROGRAM_SECONDS=2)
        use = self.table("use")[0]
        self.assertEqual(use["bound"], "launch")
        self.assertGreater(use["host_wait_ns"], 0.5 * use["span_ns"])
        idle = {row["reason"]: row for row in self.table("idle")}
        self.assertEqual(idle["host wait"]["total_ns"], use["host_wait_ns"])
        self.assertGreater(idle["host wait"]["count"], 100)
        findings = " ".join(ledger(self.output)["findings"])
        self.assertRegex(findings, r"GPUs have nothing to do in \d+ % .*GPU 0 of MPI Rank 0")
        self.assertIn("the host launches too late", findings)

    def run_beside_counters(self, use, **knobs):
        """Kernels that fill the device, and a node whose GPUs have GPM with `use` in percent."""
        self.run_program(1, 1, ranks=1, FAKE_NVML_CUDA_UUIDS=1, FAKE_NVML_USE=use,
                         LD_LIBRARY_PATH=f"{FAKES}:{FAKE_NVML}", **knobs)

    def test_a_device_has_one_name(self):
        self.run_beside_counters("1:100")
        uuids = [row["uuid"] for table in ("devices", "use") for row in self.table(table)]
        self.assertEqual(len(uuids), 2)
        with h5py.File(self.output / "profile.h5") as file:
            for uuid in uuids:
                groups = file[f"series/gpu_{uuid}"].values()
                self.assertEqual({group.attrs["device"] for group in groups}, {uuid})

    def test_counters_say_what_bounds_work(self):
        """Metrics 1, 2, 3: any work, multiprocessors, warps; 5: tensor pipes; 10: memory."""
        cases = {"memory": "1:100,2:90,3:60,5:20,10:85",
                 "small grids": "1:100,2:20,3:60,5:10,10:10"}
        folder = self.folder
        for bound, percents in cases.items():
            self.folder = folder / bound
            self.folder.mkdir()
            with self.subTest(bound):
                self.run_beside_counters(percents, GPU_PROGRAM_SECONDS=3,
                                         GPU_PROGRAM_DURATION_US=1500)
                use = self.table("use")[0]
                self.assertEqual(use["bound"], bound, use)
                self.assertGreater(use["counted_ns"], 0.5 * use["span_ns"])
                self.assertLessEqual(use["counted_ns"], use["span_ns"])
                told = dict(pair.split(":") for pair in percents.split(","))
                self.assertAlmostEqual(use["sm_active"], float(told["2"]) / 100, places=4)
                self.assertAlmostEqual(use["sm_occupancy"], 0.6, places=4)
                self.assertAlmostEqual(use["memory_use"], float(told["10"]) / 100, places=4)
                self.assertAlmostEqual(use["compute_use"], max(13, float(told["5"])) / 100,
                                       places=4, msg="metric 13 is at 13 %")
        findings = " ".join(ledger(self.output)["findings"])
        self.assertRegex(findings, r"GPU 0 of MPI Rank 0 \(GPU-01010101-\S+\) is hardly filled, "
                                   r".* in 100 % of the time")

    def test_counters_say_it_of_each_step(self):
        self.run_beside_counters("1:100,2:90,3:60,5:20,10:85", GPU_PROGRAM_STEPS=4,
                                 GPU_PROGRAM_DURATION_US=60000)
        steps = self.table("steps")
        self.assertEqual([row["step"] for row in steps], [0, 1, 2, 3])
        for row in steps[1:]:  # the reading of GPM has begun
            self.assertEqual(row["bound"], "memory")
            self.assertAlmostEqual(row["memory_use"], 0.85, places=4)

    def test_without_counters_nothing_is_claimed(self):
        self.run_program(1, 1, ranks=1, GPU_PROGRAM_SECONDS=1, GPU_PROGRAM_DURATION_US=1500)
        use = self.table("use")[0]
        self.assertIn(use["bound"], ("device", "launch"))  # a busy machine launches late
        self.assertEqual(use["counted_ns"], 0)
        self.assertNotEqual(use["memory_use"], use["memory_use"])

    def test_kernels_know_the_annotation_that_launched_them(self):
        self.run_program(30, 1, ranks=1, GPU_PROGRAM_STEPS=4)
        rows = {(r["name"], r["from"]): r["count"] for r in self.table("launches")}
        self.assertEqual(rows["forward()", "layer"], 4 * 5)
        self.assertEqual(rows["update()", "step"], 4)
        self.assertEqual(rows["reduce", ""], 10)
        steps = self.table("steps")
        self.assertEqual([row["step"] for row in steps], [0, 1, 2, 3])
        for row in steps:
            self.assertEqual(row["busy_ns"] + row["idle_ns"], row["span_ns"])
            self.assertGreater(row["compute_ns"], 0.98 * 6 * 10_000)


if __name__ == "__main__":
    main()
