"""One writer of several fails: what the others made is there, exit code and ledger tell of it, and
the next assembly tries again. A limit of files stands for a disk with room for the smaller ones."""
from fault_test import FaultCase, agent_pids, ledger, main, run, wait_until

CALLS = 600_000  # 25 MB of events of the archive; all else is below 4 MB
PATIENCE = 600  # seconds, for what comes at last on a machine that has no time for it
# A full ring would make the archive smaller: the calls come as fast as any agent takes them.
OPTIONS = ("--without", "sampling", "--budget", 100, "--attach-ms", 60_000, "--wait", PATIENCE)
WHY = "OTF2 archive: .*File is too large"


class FailedWriter(FaultCase):
    def profile(self, *options, limit="unlimited"):
        command = ["aon-run", "-o", self.output, *OPTIONS, *options, "--",
                   *self.worker("steady", CALLS)]
        process = run(["bash", "-c", 'ulimit -f "$0"; exec "$@"', limit, *command],
                      timeout_s=PATIENCE)
        self.assert_exit(process)
        wait_until(lambda: not agent_pids(self.output), PATIENCE, what="the agent's end")
        return process.stderr

    def finalize(self, *options, limit="unlimited"):
        return run(["bash", "-c", 'ulimit -f "$0"; exec aon finalize "$@"', limit, *options,
                    self.output], timeout_s=PATIENCE)

    def assert_part_of_the_result(self):
        document = ledger(self.output)
        self.assert_law(document)
        self.assert_every_call(document, 0)
        self.assertEqual([p.name for p in self.output.glob("traces*")], [])
        (failed,) = document["assembly"]["failed"]
        self.assertRegex(failed, WHY)
        self.assertIn(failed, document["assembly"]["warnings"][0])

    def assert_whole_result(self):
        document = ledger(self.output)
        self.assertEqual((document["assembly"]["failed"], document["assembly"]["warnings"]),
                         ([], []))
        self.assert_every_call(document, 0)
        self.assertTrue((self.output / "traces.otf2").exists())

    def test_exit_code_tells_and_the_next_one_tries_again(self):
        self.profile("--no-assemble")
        for options in (["--drop-spool"], ["--quiet", "--if-needed"]):
            process = self.finalize(*options, limit=2048)
            self.assert_exit(process, 1)
            self.assertRegex(process.stderr, f"^aon finalize: {WHY}; the rest is written\n$")
            self.assert_part_of_the_result()
            self.assertTrue((self.output / "spool").is_dir())
        self.assert_exit(self.finalize("--if-needed"))
        self.assert_whole_result()
        self.assert_exit(self.finalize(limit=2048), 1)
        self.assert_part_of_the_result()

    def test_assembly_at_the_end_of_the_job(self):
        said = self.profile(limit=11264).splitlines()
        self.assertRegex(said[0], f"^aon: {self.output}: profile.h5, aon.json, spool$")
        self.assertRegex(said[1], f"^aon: warning: {WHY}; run: aon finalize {self.output}$")
        (log,) = self.output.glob("agent.*.log")
        self.assertRegex(log.read_text(), f"aon finalize: {WHY}; the rest is written")
        self.assert_part_of_the_result()
        self.assert_exit(self.finalize("--if-needed"))
        self.assert_whole_result()


if __name__ == "__main__":
    main()
