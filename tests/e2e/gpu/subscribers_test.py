"""CUPTI 13.3 and later, where several clients may be at once (the _v2 functions), and what is done
where the driver or another client does not allow it."""
from gpu_case import GpuCase, main, readers

SHARED = "other clients of CUPTI may be there"


class Subscribers(GpuCase):
    def run_program(self, *arguments, **knobs):
        super().run_program(*arguments, **{"FAKE_CUPTI_VERSION": 130300, **knobs})

    def assert_shared(self):
        self.assertEqual(self.provider()["state"], "on", self.provider())
        self.assertIn(SHARED, self.provider()["reason"])

    def test_all_is_recorded_as_with_one_client(self):
        self.run_program(300, 3)
        self.assert_shared()
        self.assert_all_kernels()
        self.assert_archive_is_clean()
        self.assertEqual([r["count"] for r in self.table("graphs")], [1, 1])
        found = readers.region_counts(self.output)
        self.assertEqual(found["cuLaunchKernel"], 600 * 3)

    def test_threads_have_buffers_of_their_own(self):
        self.run_program(20_000, 4, 1, ranks=1, AON_MEMORY="64MiB")
        self.assert_all_kernels()

    def test_beside_another_client_graphs_are_what_that_has_decided(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_OTHER="torch")
        self.assert_shared()
        recorded = {row["name"]: row["count"] for row in self.table("kernels")}
        self.assertEqual(recorded.pop("graph_node"), 1)
        self.assertEqual(sum(recorded.values()), 100)

    def test_before_13_3_another_client_is_in_the_way(self):
        self.run_program(10, 1, FAKE_CUPTI_VERSION=130200, FAKE_CUPTI_OTHER="torch")
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("torch", self.provider()["reason"])

    def test_a_client_of_the_older_interface_is_in_the_way(self):
        self.run_program(10, 1, FAKE_CUPTI_BUSY="old profiler")
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("old profiler", self.provider()["reason"])

    def test_with_an_older_driver_we_are_the_only_client(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_DRIVER=580)
        self.assertEqual(self.provider()["state"], "on", self.provider())
        self.assertNotIn(SHARED, self.provider()["reason"])
        self.assert_all_kernels()

    def test_the_older_interface_can_be_asked_for(self):
        self.run_program(100, 1, ranks=1, AON_CUPTI_API="v1")
        self.assertNotIn(SHARED, self.provider()["reason"])
        self.assert_all_kernels()

    def test_an_older_driver_is_known_without_a_subscription(self):
        """Graphs: one behind a subscription that was given back may end the program."""
        self.run_program(100, 1, ranks=1, FAKE_CUDA_VERSION=13000, GPU_PROGRAM_GRAPHS=1)
        self.assertNotIn(SHARED, self.provider()["reason"])
        self.assertEqual(sum(r["count"] for r in self.table("graphs")), self.counted[0]["graphs"])

    def test_in_mode_yield_it_is_left_and_taken_again(self):
        self.run_program(100, 1, ranks=1, GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield")
        self.assertIn("paused 1\nresumed 1\n", self.process.stdout)
        self.assert_all_kernels()
        self.assertNotIn("unseen", readers.region_counts(self.output))

    def test_dropped_records_are_counted(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_DROP=10)
        self.assertRegex(self.provider()["reason"], r"\b10 records dropped by CUPTI")

    def test_a_function_that_fails_is_told(self):
        self.run_program(10, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiActivityEnable:3")
        self.assertEqual(self.provider()["reason"], "not recorded: copies")

    def test_what_is_too_dear_is_recorded_in_windows(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=4, AON_BUDGET=1,
                         FAKE_CUPTI_OVERHEAD=10_000_000)
        self.assertIn("one of 8", self.provider()["reason"])


if __name__ == "__main__":
    main()
