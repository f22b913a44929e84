"""What the tests of programs that the agent follows have in common."""
from fault_test import BUILD, FaultCase, run

import readers  # found where fault_test looks

PROGRAM = (BUILD / "bin" / "followed").resolve()
STATIC = (BUILD / "bin" / "followed_static").resolve()
# Not to be weighed against what the machine does beside it.
OPTIONS = ("--budget", "100")
LONG_ENOUGH = 2.5  # seconds of CPU time
# The same of a shell: the 14th field there is user time, in hundredths.
BURN = ("while read -ra stat < /proc/$$/stat; ((stat[13] < 250)); do "
        "for ((i = 0; i < 20000; ++i)); do :; done; done; ")
# What is loaded into a process is asked beside it, and not at once.
NO_CALL = r"(no MPI call passed the preloaded library|libmpi\S+ is loaded, and no call passed .*)"


class Followed(FaultCase):
    def job(self, *command, ranks=0, options=OPTIONS, env=None):
        launcher = ["mpirun", "-n", ranks] if ranks else []
        process = run([*launcher, "aon-run", "-o", self.output, *options, "--", *command], env=env)
        self.assert_exit(process)
        return self.finish(), process.stderr

    def assert_followed(self, entry, reason=NO_CALL, remedy="aon-run --without mpi has all"):
        providers = entry["providers"]
        self.assertEqual(entry["emitted"], 0)
        self.assertGreater(providers["perf"]["emitted"], 0)
        if providers["sampling"]["state"] != "off":
            self.assertGreater(providers["sampling"]["emitted"], 0)
        self.assertEqual(providers["mpi"]["state"], "off")
        self.assertRegex(providers["mpi"]["reason"], f"^{reason}$")
        self.assertEqual((providers["recording"]["state"], providers["recording"]["remedy"]),
                         ("degraded", remedy))
        self.assertRegex(entry["followed_since"], r"^20\d\d-.*Z$")
        self.assertEqual(entry["exit"], {"code": 0, "signal": 0})

    def assert_opens(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)

    def assert_nothing(self, document, said):
        self.assertEqual(document["ranks"], [])
        self.assertIn("nothing was recorded", said)
