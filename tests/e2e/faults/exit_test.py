"""How a program ended, where the kernel tells nobody but its parent: before Linux 6.15."""
import signal
import unittest

from fault_test import BUILD, WORKER, FaultCase, run

OLD_KERNEL = BUILD / "bin" / "old_kernel"
# The child of the aon-run that stays ends as told, and says which rank it is; others wait for that.
SCRIPT = """
if grep -q aon-run "/proc/$PPID/comm"; then
  touch "$2/child.${OMPI_COMM_WORLD_RANK:-0}"
  exec "$0" "$1" "$2" "$3"
fi
exec "$0" pace "$2" 20
"""


class ExitStatus(FaultCase):
    def end_as(self, mode, number, launcher, returncode):
        """The ledger, and in it the exit status of the one that ended so."""
        command = ["bash", "-c", SCRIPT, WORKER, mode, self.counts, number]
        process = run([OLD_KERNEL, *launcher, "aon-run", "-o", self.output, *command])
        self.assertEqual(process.returncode, returncode, process.stderr)
        document = self.finish()
        (child,) = self.counts.glob("child.*")
        return document, self.rank_of(document, int(child.suffix[1:]))["exit"]

    def test_exit_code_of_a_child_of_aon_run(self):
        _, status = self.end_as("leave", 3, [], 3)
        self.assertEqual(status, {"code": 3, "signal": 0})

    def test_signal_of_a_child_of_aon_run(self):
        document, status = self.end_as("die", 11, [], -signal.SIGSEGV)
        self.assertEqual(status, {"code": None, "signal": 11})
        self.assertFalse(document["job"]["complete"])
        self.assertIn("signal 11", document["job"]["reason"])

    def test_exit_code_below_mpirun(self):
        _, status = self.end_as("leave", 3, ["mpirun", "-n", 2], 3)
        self.assertEqual(status, {"code": 3, "signal": 0})

    def test_signal_below_mpirun(self):
        _, status = self.end_as("die", 11, ["mpirun", "-n", 2], 128 + 11)
        self.assertEqual(status, {"code": None, "signal": 11})


if __name__ == "__main__":
    unittest.main()
