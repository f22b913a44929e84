#!/usr/bin/python3
"""AON switched on by one line of slurm.conf: jobs end as they do without it, each launch leaves one
directory, and who does not want it is left alone.

    slurm_test.py [unittest arguments]
"""
import unittest

import cluster
import readers
from aon_test import environment, ledger
from cluster import AON_RUN, HEAT2D
from slurm_case import NODES, SPANK, TEXT, WORDS, OnSlurm

SHORT_COMMANDS = 1000
HYDRA = HEAT2D.with_name("heat2d_mpich")


class Enabled(OnSlurm):
    """No aon-run in any command but where a test says so."""

    def test_srun_over_two_nodes_is_one_directory(self):
        command = ["--mpi=pmix", "-N2", "-n4", *WORDS]
        plain = self.srun(*command, AON_DISABLE="1")
        self.assert_exit(plain)
        self.assert_nothing_recorded()
        done = self.srun(*command)
        self.assert_exit(done)
        self.assertEqual((done.stdout, done.stderr), (plain.stdout, plain.stderr))
        (output,) = self.outputs(1)
        readers.many_nodes(self, output, self.assert_ranks(output, range(4), NODES))

    def test_each_mpirun_of_a_batch_script_is_a_directory(self):
        script = f"mpirun {TEXT}\nmpirun -n 2 {TEXT}"
        end, text, _ = self.batch(script, "-N", NODES, "-n", 4)
        self.assertEqual(end, ("COMPLETED", "0:0"), text)
        self.assertEqual(len(text.splitlines()), 2, text)
        documents = {o: ledger(o) for o in self.outputs(2)}
        sizes = {len(d["ranks"]): o for o, d in documents.items()}
        self.assertEqual(sorted(sizes), [2, 4])
        document = self.assert_ranks(sizes[4], range(4), NODES)
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", "n2"})
        readers.many_nodes(self, sizes[4], document)
        self.assert_ranks(sizes[2], range(2), len({r["node"] for r in
                                                   documents[sizes[2]]["ranks"]}))

    @unittest.skipUnless(HYDRA.exists(), "MPICH is missing: run scripts/setup")
    def test_hydra_of_a_batch_script_is_a_directory(self):
        """It starts the proxy of the first node by itself, and those of the others by srun."""
        words = ["mpiexec.hydra -n 2 -ppn 1", AON_RUN, "-o mine", HYDRA, *WORDS[1:]]
        end, text, _ = self.batch(" ".join(map(str, words)), "-N2", "--ntasks-per-node=1")
        self.assertEqual(end, ("COMPLETED", "0:0"), text)
        self.assertEqual([p.name for p in self.place.glob("mine*")], ["mine"])
        self.assert_ranks(self.place / "mine", range(2), nodes=2)
        self.assert_nothing_recorded()  # elsewhere

    def test_mpirun_in_salloc_is_a_directory(self):
        words = ["-N", NODES, "-n", 4, "mpirun", *WORDS]
        plain = self.slurm.run("salloc", *words, cwd=self.place, env=environment(AON_DISABLE=1))
        self.assert_exit(plain)
        self.assert_nothing_recorded()
        done = self.slurm.run("salloc", *words, cwd=self.place)
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
        (output,) = self.outputs(1)
        document = self.assert_ranks(output, range(4), NODES)
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", "n2"})

    def test_srun_in_salloc_is_a_directory(self):
        done = self.slurm.run("salloc", "-n2", "srun", "--mpi=pmix", *WORDS, cwd=self.place)
        self.assert_exit(done)
        (output,) = self.outputs(1)
        self.assert_ranks(output, range(2))

    def test_each_step_and_each_task_of_an_array_is_a_directory(self):
        script = f"srun --mpi=pmix {TEXT}\nsrun --mpi=pmix {TEXT}"
        job, _ = self.submit(script, "--array=1-2")
        for task in (f"{job}_1", f"{job}_2"):
            self.assertEqual(self.slurm.wait(task), ("COMPLETED", "0:0"))
        names = [o.name for o in self.outputs(4)]
        self.assertEqual(len({n.split(".")[0] for n in names}), 2, names)
        self.assertEqual({n.split(".")[1] for n in names}, {"0", "1"}, names)

    def test_aon_run_of_the_user_keeps_its_say(self):
        wanted = self.place / "mine"
        done = self.srun("--mpi=pmix", "-n2", AON_RUN, "-o", wanted, *WORDS)
        self.assert_exit(done)
        self.assertIn(str(wanted), done.stderr)
        self.assert_nothing_recorded()
        self.assert_ranks(wanted, range(2))

    def test_an_empty_environment_is_no_obstacle(self):
        done = self.srun("--mpi=pmix", "-n2", "--export=NONE", *WORDS)
        self.assert_exit(done)
        (output,) = self.outputs(1)
        self.assert_ranks(output, range(2))
        script = f"printenv HOME; srun --mpi=pmix --export=NONE {TEXT}"
        end, text, _ = self.batch(script, "--export=NONE")
        self.assertEqual(end, ("COMPLETED", "0:0"), text)
        for output in self.outputs(2):
            self.assert_ranks(output, range(2))

    def test_the_users_own_preload_stays_first_and_ours_comes_once(self):
        mine = "/usr/lib/x86_64-linux-gnu/libm.so.6"
        script = "echo $LD_PRELOAD; srun -n1 sh -c 'echo $LD_PRELOAD'"
        end, text, _ = self.batch(script, "-n", 1, LD_PRELOAD=mine)
        self.assertEqual(end, ("COMPLETED", "0:0"), text)
        for line in text.splitlines():
            self.assertEqual(line.split(":")[0], mine)
            self.assertEqual(line.count("libaon.so"), 1, line)
            self.assertEqual(line.count("libaon-mpi.so"), 1, line)
        self.assertEqual(len(text.splitlines()), 2, text)

    def test_programs_that_record_nothing_leave_nothing(self):
        script = f"for i in $(seq {SHORT_COMMANDS}); do /bin/true; done; echo $((6 * 7))"
        end, text, job = self.batch(script, "-n", 1)
        self.assertEqual((end, text), (("COMPLETED", "0:0"), "42\n"))
        self.assert_nothing_recorded()
        self.assertEqual(self.processes_of(job), {})

    def test_who_does_not_want_it_is_left_alone(self):
        home = self.place / "home"
        (home / ".aon").mkdir(parents=True)
        (home / ".aon" / "off").touch()
        site = self.place / "site"
        site.mkdir()
        (site / "off-partitions").write_text("gpu\nall\n", encoding="utf-8")
        node = self.place / "node"
        node.mkdir()
        (node / "off").write_text("canary: a reason", encoding="utf-8")
        users = self.place / "users"
        users.mkdir()
        (users / "off-users").write_text("root\n", encoding="utf-8")
        for changes in ({"HOME": home}, {"AON_SITE_DIR": site}, {"AON_NODE_DIR": node},
                        {"AON_SITE_DIR": users},
                        {"AON_SITE_DIR": users, "USER": "me", "SLURM_JOB_USER": "me"}):
            done = self.srun("-n1", "printenv", "LD_PRELOAD", **changes)
            self.assertEqual(done.stdout, "", changes)
        self.assertIn("libaon", self.srun("-n1", "printenv", "LD_PRELOAD").stdout)
        # Neither HOME nor USER is there.
        only = self.srun(f"--export=AON_SITE_DIR={users}", "-n1", "printenv")
        self.assertNotRegex(only.stdout, "(?m)^(LD_PRELOAD|HOME|USER)=")

    def test_a_job_that_a_job_submits_is_left_alone_where_aon_is_off(self):
        """It has the environment of that job, with what the TaskProlog has put there."""
        site = self.place / "site"
        site.mkdir()
        (site / "off-partitions").write_text("all\n", encoding="utf-8")
        inner = self.place / "inner.sh"
        inner.write_text("#!/bin/sh\nprintenv\nsrun -n1 printenv\n", encoding="utf-8")
        found = self.place / "found"
        script = f"printenv LD_PRELOAD; AON_SITE_DIR={site} sbatch --wait -n1 -o {found} {inner}"
        end, text, _ = self.batch(script, "-n", 1)
        self.assertEqual(end, ("COMPLETED", "0:0"), text)
        self.assertIn("libaon", text)
        left = found.read_text()
        self.assertIn(f"AON_SITE_DIR={site}\n", left)
        self.assertNotRegex(left, "(?m)^(LD_PRELOAD|AON_(SOCKET|OUTPUT|DOOR).*)=|libaon")

    @unittest.skipUnless(SPANK.exists(), "the SPANK plugin is not built: slurm/spank.h is missing")
    def test_the_option_of_the_spank_plugin(self):
        self.assertEqual(self.srun("--aon=off", "-n1", "printenv", "LD_PRELOAD").stdout, "")
        settings = self.srun("--aon=memory=16MiB;flush-ms=100", "-n1", "printenv").stdout
        self.assertIn("AON_MEMORY=16777216\n", settings)
        self.assertIn("AON_FLUSH_MS=100\n", settings)
        done = self.srun("--aon=on", "--mpi=pmix", "-n2", *WORDS, AON_DISABLE="1")
        self.assert_exit(done)
        (output,) = self.outputs(1)
        self.assert_ranks(output, range(2))
        for words, count in (("--aon=off", 1), ("--aon=on", 2)):
            end, text, _ = self.batch(f"mpirun -n 2 {TEXT}", "-n", 2, words)
            self.assertEqual(end, ("COMPLETED", "0:0"), text)
            self.outputs(count)
        for odd in ("LD_$(x)=1;;=", "ofF", "bogus=1", "", "memory=16MiB;bogus=1"):
            refused = self.srun(f"--aon={odd}", "-n1", "echo", "runs")
            self.assertNotEqual(refused.returncode, 0, odd)
            self.assertEqual(refused.stdout, "")
            self.assertIn(f"--aon='{odd}': expected on, off or NAME=VALUE", refused.stderr)
            self.assertIn(" node-memory ", refused.stderr)


if __name__ == "__main__":
    cluster.require(slurm=True)
    unittest.main(verbosity=2)
