"""Programs that say nothing to the agent and compute: it follows them from outside, once they have
used a second of CPU time. Without MPI, linked statically, with calls by handle, before a late
MPI_Init."""
from fault_test import BUILD, main, run, wait_until
from followed import BURN, Followed, LONG_ENOUGH, OPTIONS, PROGRAM, STATIC


class Silent(Followed):
    def test_program_without_mpi(self):
        document, said = self.job(PROGRAM, "spin", LONG_ENOUGH)
        (entry,) = document["ranks"]
        self.assert_followed(entry)
        self.assertEqual((entry["rank"], entry["program"]), (None, str(PROGRAM)))
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertNotIn("nothing was recorded", said)
        self.assertIn("no calls recorded; ", said)
        self.assertIn("(aon-run --without mpi has all)", said)
        self.assert_opens()

    def test_ranks_without_mpi(self):
        document, said = self.job(PROGRAM, "spin", LONG_ENOUGH, ranks=2)
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for entry in document["ranks"]:
            self.assert_followed(entry)
            self.assertEqual(entry["world"], 2)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(document["job"]["incomplete_ranks"], [])
        self.assertIn("2 ranks on 1 node", said)
        self.assert_opens()

    def test_threads_that_were_there_before(self):
        import h5py

        document, _ = self.job(PROGRAM, "spin", LONG_ENOUGH, 3)
        if document["ranks"][0]["providers"]["sampling"]["state"] == "off":
            self.skipTest(document["ranks"][0]["providers"]["sampling"]["reason"])
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(len(set(file["samples/tid"][:])), 3)

    def test_static_program(self):
        document, said = self.job(STATIC, "spin", LONG_ENOUGH)
        (entry,) = document["ranks"]
        reason = f"{STATIC} is linked statically: no library can be loaded into it"
        self.assert_followed(entry, reason)
        self.assertEqual(document["nodes"][0]["providers"]["mpi"]["reason"], reason)
        self.assertEqual(said.count("is linked statically"), 1, said)

    def test_program_that_another_became(self):
        script = f"{BURN} exec {PROGRAM} spin 1"
        document, _ = self.job("bash", "-c", script)
        self.assert_followed(document["ranks"][0])
        self.assertEqual(len(document["ranks"]), 1)

    def test_rank_that_is_killed(self):
        run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--", "bash", "-c",
             f"{BURN} kill -9 $$"])
        document = self.finish()
        self.assertEqual(self.rank_of(document, 0)["exit"], {"code": None, "signal": 9})
        self.assertEqual(document["job"]["incomplete_ranks"], [0])

    def test_killed_worker_goes_on_following(self):
        process = self.start_job(2, PROGRAM, "spin", 6, options=OPTIONS)
        wait_until(lambda: list(self.output.glob("spool/*/p[0-9]*.aon")), what="samples")
        self.kill_worker()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        document = self.finish()
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for entry in document["ranks"]:
            self.assert_followed(entry)

    def test_worker_that_was_killed_before(self):
        process = self.start_job(1, PROGRAM, "spin", 4, options=OPTIONS)
        # What aon-run has said is with the keeper then.
        wait_until(lambda: list(self.output.glob("spool/*/definitions.aon")), what="a spool")
        self.kill_worker()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assert_followed(self.rank_of(self.finish(), 0))


class ByHandle(Followed):
    """MPI runs, and its calls go past the preloaded library."""

    def assert_told(self, entry, said):
        mpi = entry["providers"]["mpi"]
        self.assertEqual(mpi["state"], "off", mpi)
        self.assertRegex(mpi["reason"], r"^libmpi\S+ is loaded, and no call passed libaon-mpi.so: ")
        self.assertIn("dlsym(RTLD_DEFAULT, name)", mpi["remedy"])
        self.assertIn("not collected: mpi off on 1 process: libmpi", said)

    def test_program_that_says_nothing(self):
        document, said = self.job(PROGRAM, "handle", 8, ranks=1)
        entry = self.rank_of(document, 0)
        self.assertIn("followed_since", entry)
        self.assert_told(entry, said)

    def test_program_that_records_something_else(self):
        document, said = self.job(PROGRAM, "handle", 8, 2, ranks=1)
        entry = self.rank_of(document, 0)
        self.assertEqual(entry["emitted"], 2)
        self.assertNotIn("followed_since", entry)
        self.assert_told(entry, said)


class LateWord(Followed):
    def test_late_init(self):
        document, said = self.job(PROGRAM, "later", LONG_ENOUGH, 50, ranks=2)
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        for rank, entry in enumerate(document["ranks"]):
            self.assertEqual(entry["providers"]["mpi"]["state"], "on")
            self.assertNotIn("recording", entry["providers"])
            self.assertNotIn("followed_since", entry)
            self.assertGreater(entry["providers"]["perf"]["emitted"], 0)
            self.assertEqual(entry["emitted"], 52)
            self.assertEqual(self.profile_count(rank), 50)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertTrue(document["assembly"]["communication_complete"])
        self.assertNotIn("not collected: mpi", said)
        self.assert_opens()

    def test_other_program_of_the_same_process(self):
        script = f"{BURN} exec {BUILD}/bin/agent_emitter 2 1000 100 100"
        document, _ = self.job("bash", "-c", script, ranks=1)
        (entry,) = document["ranks"]
        self.assertEqual((entry["rank"], entry["emitted"], entry["exit"]["code"]), (0, 2000, 0))
        self.assertTrue(entry["program"].endswith("agent_emitter"), entry["program"])
        self.assertGreater(entry["providers"]["perf"]["emitted"], 0)


if __name__ == "__main__":
    main()
