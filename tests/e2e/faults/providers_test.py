"""--providers and --without: names are checked before anything starts, what was left out stands in
the ledger, and what is left records."""
import shutil
import unittest

from fault_test import BUILD, FaultCase, agent_pids, environment, run, wait_until


def install(folder):
    """An installation of its own, to be changed."""
    (folder / "bin").mkdir(parents=True)
    for name in ("aon", "aon-run", "aon-agent"):
        shutil.copy(BUILD / "bin" / name, folder / "bin")
    shutil.copytree(BUILD / "lib", folder / "lib")
    return folder


class Names(FaultCase):
    def refused(self, *command, says, env=None):
        process = run(["aon-run", "-o", self.output, *command, "--", "echo", "ran"], env=env)
        self.assert_exit(process, 2)
        for text in says:
            self.assertIn(text, process.stderr)
        self.assertEqual(process.stdout, "")
        self.assertFalse(self.output.exists(), "nothing was started")

    def test_unknown_name(self):
        for option in ("--providers", "--without"):
            for value in ("bogus", "mpi,bogus"):
                installed = (
                    "cupti, energy, example, gpu-counters, membw, mpi, nccl, network, node, nvml, "
                    "nvtx, perf, process, sampling"
                )
                self.refused(option, value, says=[option, "'bogus'", installed])

    def test_unknown_name_from_the_environment(self):
        self.refused(says=["--without", "'bogus'"], env=environment(AON_WITHOUT="bogus"))

    def test_known_but_not_installed(self):
        prefix = install(self.folder / "prefix")
        (prefix / "lib" / "aon" / "providers" / "libaon-provider-nvml.so").unlink()
        process = run([prefix / "bin" / "aon-run", "-o", self.output, "--providers", "nvml", "--",
                       "echo", "ran"])
        self.assert_exit(process, 2)
        for text in ("'nvml'", "not installed", "mpi, nccl, network"):
            self.assertIn(text, process.stderr)
        self.assertEqual(process.stdout, "")

    def test_path_that_is_not_there(self):
        self.refused("--providers", "/none/provider.so", says=["/none/provider.so"])

    def test_installed_names_are_accepted(self):
        for options in (["--without", "mpi,perf,example"], ["--providers", "mpi,perf,example"]):
            process = run(["aon-run", *options, "--dry-run", "--", "echo", "ran"])
            self.assert_exit(process)


class Said(FaultCase):
    def test_log_of_a_verbose_agent_names_the_providers_that_are_off(self):
        for options, count in (([], 0), (["-v"], 1)):
            self.output = self.folder / f"job-{count}"
            command = ["aon-run", *options, "-o", self.output, "--providers", "mpi,gpu-counters"]
            self.assert_exit(run([*command, *self.worker("calls", 10)]))
            self.finish()
            wait_until(lambda: not agent_pids(self.output), what="the agent's end")
            text = "".join(log.read_text() for log in self.output.glob("agent.*.log"))
            self.assertEqual(text.count("info: provider gpu-counters: not available"), count, text)


class LeftAlone(FaultCase):
    def test_variable_of_the_user_stands_in_the_ledger(self):
        """An installation with one more plugin, whose variable the user has set."""
        prefix = install(self.folder / "prefix")
        (prefix / "lib" / "libnccl-profiler-aon.so").write_bytes(b"")
        command = [prefix / "bin" / "aon-run", "-o", self.output, *self.worker("calls", 10)]
        self.assert_exit(run(command, env=environment(NCCL_PROFILER_PLUGIN="/my/plugin.so")))
        document = self.finish()
        for providers in (document["nodes"][0]["providers"], document["ranks"][0]["providers"]):
            nccl = providers["nccl"]
            self.assertEqual(nccl["state"], "off")
            self.assertIn("NCCL_PROFILER_PLUGIN was set", nccl["reason"])
            self.assertEqual(nccl["remedy"], "unset NCCL_PROFILER_PLUGIN")


class LeftOut(FaultCase):
    def profile(self, *options, ranks=2, command=None):
        process = run(["mpirun", "-n", ranks, "aon-run", "-o", self.output, *options, "--",
                       *(command or self.worker("pace", 1))])
        self.assert_exit(process)
        return self.finish(), process.stderr

    def assert_off(self, providers, name, option):
        self.assertEqual(providers[name]["state"], "off")
        self.assertIn(option, providers[name]["reason"])
        self.assertIn(name, providers[name]["remedy"])

    def test_without_perf(self):
        document, said = self.profile("--without", "perf")
        for rank in (0, 1):
            providers = self.rank_of(document, rank)["providers"]
            self.assert_off(providers, "perf", "excluded by --without")
            self.assertEqual(providers["mpi"]["state"], "on")
        self.assert_off(document["nodes"][0]["providers"], "perf", "excluded by --without")
        self.assertNotIn("example", document["nodes"][0]["providers"], "nobody named it")
        self.assertNotIn("perf off", said, "he knows")

    def test_only_perf(self):
        document, said = self.profile("--providers", "perf")
        self.assertNotIn("not in --providers", said)
        for rank in (0, 1):
            self.assert_off(self.rank_of(document, rank)["providers"], "mpi", "not in --providers")

    def test_series_of_the_node_make_no_process(self):
        document, _ = self.profile("--providers", "mpi,example")
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        self.assertGreater(document["nodes"][0]["samples"], 0)
        self.assertTrue(document["job"]["complete"], document["job"])

    def test_perf_counts_each_rank_without_mpi(self):
        import h5py

        document, said = self.profile("--without", "mpi")
        self.assertTrue(document["job"]["complete"], document["job"])
        for rank in (0, 1):
            entry = self.rank_of(document, rank)
            self.assert_off(entry["providers"], "mpi", "excluded by --without")
            self.assertIn(entry["providers"]["perf"]["state"], ("on", "degraded"))
            self.assertGreater(entry["providers"]["perf"]["emitted"], 0)
            self.assertEqual(entry["exit"], {"code": 0, "signal": 0})
            self.assertEqual((entry["world"], entry["emitted"]), (2, 0))
            self.assertTrue(entry["program"].endswith("fault_worker"), entry["program"])
        self.assertEqual(document["nodes"][0]["providers"]["perf"]["state"],
                         self.rank_of(document, 0)["providers"]["perf"]["state"])
        self.assertIn("2 ranks on 1 node", said)
        self.assertNotIn("nothing was recorded", said)
        self.assertIn("samples", said)
        with h5py.File(self.output / "profile.h5") as file:
            self.assertIn("series", file)
            self.assertGreater(len(file["series"]), 0)

    def test_rank_killed_without_mpi(self):
        script = "sleep 0.5; kill -9 $$"
        run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--without", "mpi",
             "bash", "-c", script])
        document = self.finish()
        self.assertEqual(self.rank_of(document, 0)["exit"], {"code": None, "signal": 9})
        self.assertEqual(document["job"]["incomplete_ranks"], [0])

    def test_a_followed_process_that_records_all_the_same_is_one_process(self):
        """A program may write records without MPI: it takes the place that aon-run announced."""
        # The agent runs by then.
        script = f"sleep 0.5; exec {BUILD}/bin/agent_emitter 2 1000 100 100"
        document, _ = self.profile("--without", "mpi", command=["bash", "-c", script])
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for rank in (0, 1):
            entry = self.rank_of(document, rank)
            self.assertEqual((entry["emitted"], entry["exit"]["code"]), (2000, 0))
            self.assertTrue(entry["program"].endswith("agent_emitter"), entry["program"])
            self.assertGreater(entry["providers"]["perf"]["emitted"], 0)
        self.assertTrue(document["job"]["complete"], document["job"])

    def test_killed_worker_goes_on_following(self):
        process = self.start_job(2, *self.worker("pace", 3), options=["--without", "mpi"])
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        self.kill_worker()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        document = self.finish()
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for rank in (0, 1):
            entry = self.rank_of(document, rank)
            self.assertEqual(entry["exit"], {"code": 0, "signal": 0})
            self.assertGreater(entry["providers"]["perf"]["emitted"], 0)

    def test_everything_left_out(self):
        _, said = self.profile("--without", "mpi,perf")
        self.assertNotIn("called MPI", said)
        self.assertNotIn("excluded by --without", said)


if __name__ == "__main__":
    unittest.main()
