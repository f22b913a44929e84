"""`aon export` on a real job, read by somebody else."""
import subprocess
import unittest

from aon_test import TestCase, ledger, run

SLURM_CONF = """ClusterName=aon
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CryptoType=crypto/none
AcctGatherProfileType=acct_gather_profile/hdf5
NodeName=localhost CPUs=1
PartitionName=p Nodes=localhost
"""
RANKS = 2


SCRIPT = """
import time
from mpi4py import MPI
end = time.time() + 5
while time.time() < end:
    pass
"""


class Export(TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        process = run(["mpirun", "-n", RANKS, "aon-run", "-o", self.output,
                       "/usr/bin/python3", "-c", SCRIPT])
        self.assert_exit(process)
        self.assertTrue((self.output / "profile.h5").exists(), process.stderr)
        self.target = self.folder / "slurm.h5"

    def test_slurm_hdf5_has_the_ranks_seconds(self):
        import h5py

        self.assert_exit(run(["aon", "export", self.output, "--slurm-hdf5", self.target]))
        with h5py.File(self.target) as file:
            (host,) = file["Steps/0/Nodes"]
            tasks = file[f"Steps/0/Nodes/{host}/Tasks"]
            said = [(r["rank"], r["providers"]) for r in ledger(self.output)["ranks"]]
            self.assertEqual(sorted(tasks), [str(rank) for rank in range(RANKS)], said)
            for rank in range(RANKS):
                rows = tasks[str(rank)][:]
                self.assertGreaterEqual(len(rows), 3, said)
                self.assertGreater(float(rows["CPUTime"].sum()), 0.1, f"{rows} {said}")

    def test_sh5util_reads_it(self):
        self.assert_exit(run(["aon", "export", self.output, "--slurm-hdf5", self.target]))
        conf = self.folder / "slurm.conf"
        conf.write_text(SLURM_CONF)
        (self.folder / "acct_gather.conf").write_text(f"ProfileHDF5Dir={self.folder}\n")
        out = subprocess.run(["sh5util", "-j", "1", "-s", "Tasks", "-i", self.target, "-L"],
                             env={"PATH": "/usr/bin:/bin", "SLURM_CONF": str(conf)},
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stdout.split()[:4],
                         ["ElapsedTime", "EpochTime", "CPUUtilization", "CPUTime"], out.stderr)

    def test_job_without_a_profile_is_refused(self):
        (self.output / "profile.h5").unlink()
        process = run(["aon", "export", self.output, "--slurm-hdf5", self.target])
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("aon finalize", process.stderr)
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
