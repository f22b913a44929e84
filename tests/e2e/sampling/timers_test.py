"""Samples by timers in the program, where perf is forbidden and the user asked for them."""
from sampling import BUILD, HOT, NO_PERF, UNBOUNDED, Samples

import aon_test
from aon_test import PYTHON, environment, ledger, run

INTERRUPTED = BUILD / "bin" / "sampling_interrupted"
MODULE = BUILD / "lib" / "aon" / "python"
TIMERS = (*UNBOUNDED, "--sampling-fallback", "timer")


class Timers(aon_test.TestCase):
    def sample(self, *command, options=TIMERS, **changes):
        output = self.folder / "out"
        aon_run = [NO_PERF, "aon-run", "-o", output, *options]
        done = run([*aon_run, *command], env=environment(**changes))
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        return output, document, done

    def providers(self, document):
        (rank,) = [r for r in document["ranks"] if "sampling-timer" in r["providers"]]
        return rank["providers"]

    def test_functions_have_their_share(self):
        """97 Hz for 3 s are 291 samples, of which 70 % are in hot(): the standard error is 2.7 %,
        and five of them are allowed."""
        output, document, _ = self.sample(HOT, 3000)
        node = document["nodes"][0]["providers"]["sampling"]
        self.assertEqual(node["state"], "degraded")
        self.assertIn("perf_event_open is forbidden", node["reason"])
        self.assertIn("by timers", node["reason"])
        self.assertEqual(self.providers(document)["sampling-timer"]["state"], "on")
        samples = Samples(output)
        counts = samples.by_function()
        self.assertGreater(samples.count(), 100)
        share = counts["hot"] / max(1, counts["hot"] + counts["cold"])
        self.assertAlmostEqual(share, 0.7, delta=0.14, msg=str(counts))
        paths = {tuple(samples.path(row[2])) for row in samples.rows}
        self.assertTrue(any(path[-3:] == ("main", "work", "hot") for path in paths), paths)

    def test_no_system_call_is_interrupted(self):
        output, document, done = self.sample(INTERRUPTED)
        self.assertEqual(self.providers(document)["sampling-timer"]["state"], "on")
        self.assertEqual(done.stdout, "interrupted 0, handled 1\n")
        self.assertGreater(Samples(output).count(), 50)

    def test_no_signal_is_taken_unless_asked_for(self):
        _, document, done = self.sample(INTERRUPTED, options=())
        self.assertEqual(done.stdout, "interrupted 0, handled 0\n")
        node = document["nodes"][0]["providers"]["sampling"]
        self.assertEqual(node["state"], "off")
        self.assertIn("--sampling-fallback=timer", node["remedy"])

    def test_no_signal_is_taken_where_perf_works(self):
        done = run(["aon-run", "-o", self.folder / "out", *TIMERS, INTERRUPTED])
        self.assert_exit(done)
        node = ledger(self.folder / "out")["nodes"][0]["providers"]["sampling"]
        if "by timers" in node["reason"]:
            self.skipTest(node["reason"])
        self.assertEqual(done.stdout, "interrupted 0, handled 0\n")

    def test_a_program_keeps_its_handler(self):
        if not list(MODULE.glob("aon/_aon*.so")):
            self.skipTest("the extension is not built here")
        code = "import aon, os, signal\nsignal.signal(signal.SIGURG, lambda *_: print('urgent'))\n"
        code += "aon.mark('x')\nos.kill(os.getpid(), signal.SIGURG)\naon.mark('y')"
        _, document, done = self.sample(PYTHON, "-B", "-c", code, PYTHONPATH=MODULE)
        self.assertEqual(done.stdout, "urgent\n")
        state = self.providers(document)["sampling-timer"]
        self.assertEqual(state["state"], "off")
        self.assertIn("SIGURG", state["reason"])

    def test_a_forked_child_has_timers_of_its_own(self):
        if not list(MODULE.glob("aon/_aon*.so")):
            self.skipTest("the extension is not built here")
        code = "import aon, os\naon.mark('x')\nchild = os.fork()\naon.mark('y')\n"
        code += "if child: os.waitpid(child, 0)"
        _, document, _ = self.sample(PYTHON, "-B", "-c", code, PYTHONPATH=MODULE)
        told = [r["providers"].get("sampling-timer") for r in document["ranks"] if r["emitted"]]
        self.assertEqual([state["state"] for state in told], ["on", "on"], told)


if __name__ == "__main__":
    aon_test.main()
