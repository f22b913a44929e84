"""The options of CUPTI: what each changes in the files, where it comes from, who gets it."""
from gpu_case import GpuCase, main, readers
from aon_test import environment, run

VARIABLES = ("AON_CUPTI_MODE", "AON_CUPTI_GRAPH", "AON_CUPTI_CALLS", "AON_CUPTI_MEMORY")


class Recorded(GpuCase):
    def test_mode_off_records_no_work(self):
        self.run_program(10, 1, ranks=1, options=("--cupti-mode", "off"))
        self.assertEqual(self.provider()["state"], "off")
        self.assertIn("switched off by --cupti-mode", self.provider()["reason"])
        self.assertEqual(self.streams(), {})

    def test_graphs_are_recorded_node_by_node(self):
        self.run_program(10, 1, ranks=1, options=("--cupti-graph", "node"))
        kernels = {row["name"]: row["count"] for row in self.table("kernels")}
        self.assertEqual(kernels["graph_node"], 1)
        self.assertEqual(self.table("graphs"), [])

    def test_calls_are_left_out(self):
        self.run_program(10, 1, ranks=1, options=("--cupti-calls", "0"))
        self.assert_all_kernels()
        self.assertNotIn("cuLaunchKernel", readers.region_counts(self.output))

    def test_memory_is_what_it_says(self):
        """CUPTI holds what it has until it is flushed by force."""
        self.run_program(30_000, 1, ranks=1, options=("--cupti-memory", "2"), FAKE_CUPTI_HOLD=1,
                         AON_MEMORY="64MiB")
        self.assertLess(self.kernel_counts()[0], 30_000)
        self.assertIn("--cupti-memory", self.provider()["remedy"])

    def test_the_file_has_them_too_and_the_command_line_has_the_last_word(self):
        file = self.folder / "aon.toml"
        file.write_text('cupti-mode = "off"\ncupti-calls = false\ncupti-memory = 16\n')
        self.run_program(10, 1, ranks=1, options=("--cupti-mode", "exclusive"), AON_CONFIG=file)
        self.assert_all_kernels()
        self.assertNotIn("cuLaunchKernel", readers.region_counts(self.output))


class Handed(GpuCase):
    """To the program's environment."""

    def variables(self, *words, **changes):
        """As the program that `words` starts sees them."""
        done = run(["aon-run", "-o", self.folder / "job", *words, "env"],
                   env=environment(**changes))
        self.assert_exit(done)
        found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        return {name: found[name] for name in VARIABLES if name in found}

    def test_only_where_they_are_not_as_usual(self):
        self.assertEqual(self.variables("--cupti-memory", "256MiB", "--cupti-calls=yes"), {})
        told = self.variables("--cupti-mode", "yield", "--cupti-graph", "node", "--cupti-calls",
                              "off", "--cupti-memory", "1G")
        self.assertEqual(told, dict(zip(VARIABLES, ("yield", "node", "0", "1024"))))

    def test_not_without_the_provider(self):
        for words in (("--without", "cupti"), ("--providers", "mpi")):
            self.assertEqual(self.variables(*words, "--cupti-mode", "yield"), {})

    def test_by_an_outer_run_unless_the_inner_one_says_something_else(self):
        outer = ("--cupti-graph", "node", "--cupti-memory", "8", "aon-run", "-o", self.folder / "b")
        told = {"AON_CUPTI_GRAPH": "node", "AON_CUPTI_MEMORY": "8"}
        self.assertEqual(self.variables(*outer), told)
        told["AON_CUPTI_GRAPH"] = "graph"
        self.assertEqual(self.variables(*outer, "--cupti-graph", "graph"), told)

    def test_and_a_dry_run_names_them(self):
        done = run(["aon-run", "--dry-run", "--cupti-mode", "yield", "true"])
        self.assert_exit(done)
        self.assertIn("AON_CUPTI_MODE=yield", done.stdout + done.stderr)
        self.assertNotIn("AON_CUPTI_GRAPH", done.stdout + done.stderr)


class Refused(GpuCase):
    def assert_refused(self, words, says, **changes):
        ran = self.folder / "ran"
        done = run(["aon-run", "-o", self.folder / "job", *words, "touch", ran],
                   env=environment(**changes))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertFalse(ran.exists())

    def test_before_the_program_starts(self):
        self.assert_refused(["--cupti-mode", "Off"], "expected one of exclusive|yield|off")
        self.assert_refused(["--cupti-calls", "few"], "expected 1 or 0")
        self.assert_refused(["--cupti-memory", "3000K"], "expected MiB, or a size like 64MiB")
        self.assert_refused([], "AON_CUPTI_MEMORY: '1' is not valid for --cupti-memory: expected "
                            "2MiB to 1GiB", AON_CUPTI_MEMORY=1)
        self.assert_refused([], "AON_CUPTI_GRAPH: 'nodes' is not valid", AON_CUPTI_GRAPH="nodes")


if __name__ == "__main__":
    main()
