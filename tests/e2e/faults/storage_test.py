"""Storage that ends: a full disk, a full /dev/shm, few descriptors, little address space."""
import contextlib
import os
import pathlib
import re
import subprocess
import time
import unittest

import h5py
import numpy as np
import otf2

from fault_test import (
    IS_SANITIZED, WORKER, FaultCase, agent_pids, environment, ledger, main, run, wait_for_removal,
    wait_until, worker_pids,
)  # fmt: skip

needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small file system")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class SmallDisk(FaultCase):
    def mount(self, size):
        place = self.folder / "small"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", place])
        return place

    @needs_root
    def test_disk_that_fills_up_during_the_run(self):
        place = self.mount("1m")
        self.output = place / "job"
        command = ["mpirun", "-n", 2, "aon-run", "-o", self.output, "--flush-ms", 50, "--wait", 5,
                   *self.worker("loop", 2)]
        process = run(command)
        self.assert_exit(process)
        self.assertEqual(process.stdout.count("calls"), 2, process.stdout)
        subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)
        document = self.finish()
        lost = 0
        for rank in (0, 1):
            _, _, entry = self.assert_every_call(document, rank)
            lost += entry["lost"]
        self.assertGreater(lost, 0, "a disk of 1 MiB cannot hold it all")
        (node,) = document["nodes"]
        disk = node["providers"]["disk"]
        self.assertIn(disk["state"], ("on", "degraded"), "on: it could be written again")
        if disk["state"] == "degraded":
            self.assertRegex(disk["reason"], "No space left|nearly full")
            self.assertIn("--spool-dir", disk["remedy"])
        self.assertTrue({loss["reason"] for loss in document["losses"]} <=
                        {"pool full", "write failed", "evicted by cap"})

    @needs_root
    def test_topology_that_is_written_when_there_is_room(self):
        place = self.mount("1m")
        self.output = place / "job"
        filler = place / "filler"
        with open(filler, "wb", buffering=0) as file:
            file.write(bytes((1 << 20) - (64 << 10)))
            process = self.start("aon-run", "-o", self.output, *self.worker("until", 60))
            wait_until(lambda: list(self.output.glob("spool/*")), what="the spool's folder")
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
        self.wait_for_calls(0)
        (folder,) = self.output.glob("spool/*")
        wait_for_removal(folder, "topology.xml")  # a piece that did not fit
        filler.unlink()
        wait_until(lambda: [f for f in self.output.glob("spool/*/topology.xml")
                            if f.stat().st_size > 0], what="topology.xml")
        subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)  # for the archive
        (self.counts / "end").touch()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        (node,) = self.finish()["nodes"]
        self.assertEqual(node["providers"]["topology"]["state"], "on", "it was told meanwhile")

    @needs_root
    def test_last_of_the_disk_is_left_to_the_application(self):
        """5 % of 64 MiB are 3.2 MiB, beyond which others have left 1 MiB."""
        place = self.mount("64m")
        (place / "others").write_bytes(bytes((64 << 20) * 95 // 100 - (1 << 20)))
        self.output = place / "job"
        process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output, "--flush-ms", 50,
                       "--no-assemble", "--budget", 100, *self.worker("calls", 2000000)])
        self.assert_exit(process)
        wait_until(lambda: not agent_pids(self.output), what="end of the agent")
        (place / "results").write_bytes(bytes(2 << 20))
        subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank)
        self.assertIn("evicted by cap", {loss["reason"] for loss in document["losses"]})
        disk = document["nodes"][0]["providers"]["disk"]
        self.assertEqual(disk["state"], "degraded")
        self.assertIn("nearly full", disk["reason"])
        self.assertIn("--spool-dir", disk["remedy"])

    @needs_root
    def test_disk_that_is_full_from_the_start(self):
        place = self.mount("64k")
        ballast = os.open(place / "ballast", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(ballast, bytes(4096))
        os.close(ballast)
        process = run(["aon-run", "-o", place / "job", "--wait", 2, "echo", "ran"])
        self.assert_exit(process)
        self.assertEqual(process.stdout, "ran\n")

    @needs_root
    def test_disk_without_room_for_the_archive(self):
        """What is missing, why, and how to get it."""
        place = self.mount("300k")
        self.output = place / "job"
        worker = self.worker("calls", 1000)
        process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output, *worker])
        self.assert_exit(process)
        # Libraries of files leak where they cannot write, which a sanitizer says last.
        why = ".+" if IS_SANITIZED else ".*No space left on device"
        self.assertRegex(process.stderr,  # there may be room for the smaller of the two files
                         f"(aon finalize failed|warning: profile.h5|warning: OTF2 archive): {why}; "
                         f"run: aon finalize {self.output}")
        subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    @needs_root
    def test_disk_with_less_room_than_one_timeline_of_the_archive(self):
        """Libraries of files go wrong in their own ways where a write fails in the middle."""
        place = self.mount("64m")
        self.output = place / "job"
        self.assert_exit(run(["mpirun", "-n", 2, "aon-run", "-o", self.output, "--no-assemble",
                              "--budget", 100, *self.worker("calls", 300000)]))
        before = sorted(p.name for p in self.output.iterdir())
        used = sum(p.lstat().st_blocks * 512 for p in place.rglob("*"))
        for spare in (1, 2, 3, 4, 6):
            with self.subTest(spare=spare):
                size = used + (spare << 20)
                subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)
                begin = time.monotonic()
                process = run(["aon", "finalize", self.output])
                self.assertEqual(process.returncode, 1, process.stdout + process.stderr)
                self.assertRegex(process.stderr, "aon finalize: .*No space left on device")
                self.assertEqual(sorted(p.name for p in self.output.iterdir()), before)
                # No event tries the disk again.
                self.assertLess(time.monotonic() - begin, 300 if IS_SANITIZED else 30)
        subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    @needs_root
    def test_job_whose_archive_does_not_fit_says_why(self):
        place = self.mount("5m")
        self.output = place / "job"
        process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output, "--budget", 100,
                       *self.worker("calls", 300000)])
        self.assert_exit(process)
        why = ".+" if IS_SANITIZED else ".*No space left on device"
        self.assertRegex(process.stderr,
                         f"aon finalize failed: {why}; run: aon finalize {self.output}")
        self.assertEqual([p.name for p in self.output.glob(".assemble-*")], [])
        subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    @needs_root
    def test_full_shared_memory(self):
        script = ('mount -t tmpfs -o size=64k tmpfs /dev/shm && '
                  '{ head -c 65536 /dev/zero >/dev/shm/ballast; exec "$@"; }')
        inside = ["unshare", "-m", "bash", "-c", script, "bash"]
        worker = self.worker("calls", 1000)
        plain = run([*inside, "mpirun", "-n", 2, *worker])
        process = run([*inside, "mpirun", "-n", 2, "aon-run", "-o", self.output, *worker])
        self.assert_exit(process, plain.returncode)
        if plain.returncode != 0:
            self.skipTest("MPI itself does not run without /dev/shm")
        document = self.finish()
        for rank in (0, 1):
            made, seen, entry = self.assert_every_call(document, rank)
            self.assertEqual((made, seen, entry["lost"]), (1000, 1000, 0))


class BlockedDisk(FaultCase):
    """A file system whose writes hang for ten seconds, as a busy parallel one does."""

    BLOCKED_S = 10

    def mount(self):
        image, place = self.folder / "image", self.folder / "disk"
        place.mkdir()
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        self.assert_exit(run(["mkfs.ext4", "-q", image]))
        self.assert_exit(run(["mount", "-o", "loop", image, place]))
        self.addCleanup(subprocess.run, ["umount", "-l", place])
        return place

    def freeze(self, place):
        self.assert_exit(run(["fsfreeze", "-f", place]))
        self.addCleanup(subprocess.run, ["fsfreeze", "-u", place], stderr=subprocess.DEVNULL)

    def writers_that_hang(self):
        """Threads of the agent in an uninterruptible wait."""
        hanging = []
        for pid in agent_pids(self.output):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                if (task / "stat").read_text().rpartition(")")[2].split()[0] == "D":
                    hanging.append(task.name)
        return hanging

    @needs_root
    def test_write_that_hangs_for_ten_seconds_loses_nothing(self):
        place = self.mount()
        self.output = place / "job"
        ranks = 2
        # Rings that hold less than a second of it, and staging (a 16th) that holds it all.
        process = self.start_job(
            ranks, *self.worker("pace", self.BLOCKED_S + 4),
            options=["--flush-ms", 50, "--memory", "1MiB", "--node-memory", "1GiB"])
        for rank in range(ranks):
            self.wait_for_calls(rank)
        begin = time.monotonic()
        self.freeze(place)
        frozen_counts = [self.own_count(rank) for rank in range(ranks)]
        wait_until(self.writers_that_hang, what="a write that hangs")
        time.sleep(max(0, self.BLOCKED_S - (time.monotonic() - begin)))
        self.assertTrue(self.writers_that_hang(), "it hangs to the end")
        made_meanwhile = [self.own_count(r) - frozen_counts[r] for r in range(ranks)]
        self.assert_exit(run(["fsfreeze", "-u", place]))
        _, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 0, err)
        document = self.finish()
        self.assertEqual(document["losses"], [])
        for rank in range(ranks):
            self.assertGreater(made_meanwhile[rank] * 32, 1 << 20, "more than the ring holds")
            made, seen, entry = self.assert_every_call(document, rank)
            self.assertEqual((seen, entry["spooled"], entry["lost"]), (made, made + 2, 0))


class Cap(FaultCase):
    def test_everything_of_a_chatty_job_stays_below_it(self):
        """Spool, archive, profile and ledger, as du counts them."""
        for mib in (6, 16):
            with self.subTest(mib=mib):
                document = self.chatty_job(mib)
                for rank in (0, 1):
                    self.assert_every_call(document, rank)
                events = sum(p.stat().st_size for p in self.output.glob("traces/*.evt"))
                self.assertGreater(events, mib << 14, "the archive gets its part")
                used = sum(p.lstat().st_blocks * 512 for p in self.output.rglob("*"))
                self.assertLessEqual(used, mib << 20)
                if mib == 6:  # the other has a million events
                    self.assert_newest_kept(document)

    def test_counters_of_the_program_stay_below_it(self):
        """What is set is in the archive and in profile.h5, as far back as there is room."""
        mib = 2
        process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--disk", f"{mib}MiB",
                       *self.worker("counters", 3000)])
        self.assert_exit(process)
        document = self.finish()
        with h5py.File(self.output / "profile.h5") as file:
            series = file["series/rank_0/user"]
            times, start_ns = series["time"][:], file.attrs["start_ns"]
            names = [name for name in series if name != "time"]
            self.assertEqual(len(names), 60)
            values = sum(np.count_nonzero(~np.isnan(series[name][:])) for name in names)
        self.assertEqual(values, len(times))
        self.assertGreater(values, 1000, "it gets its part")
        self.assertLess(values, 60 * 3000, "there is no room for all")
        used = sum(p.lstat().st_blocks * 512 for p in self.output.rglob("*"))
        self.assertLessEqual(used, mib << 20)
        (warning,) = [w for w in document["assembly"]["warnings"] if "set as counters" in w]
        begin = np.datetime64(re.search(r"begin at (\S+)Z:", warning)[1])
        self.assertLessEqual(begin, np.datetime64(int(times[0]), "ns"))
        self.assertGreater(times[0], start_ns)

    def chatty_job(self, mib):
        """As long as it takes for more than `mib` MiB, which depends on the machine."""
        for seconds in (4, 12, 40):
            self.output = self.folder / f"job-{mib}-{seconds}"
            process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output,
                           "--disk", f"{mib}MiB", *self.worker("loop", seconds)])
            self.assert_exit(process)
            document = self.finish()
            if any(loss["reason"] == "evicted by cap" for loss in document["losses"]):
                return document
        self.fail("not chatty enough")

    def assert_newest_kept(self, document):
        """What was evicted is older than all that the archive has, which goes on to the end."""
        evicted_ns = {loss["rank"]: loss["end_ns"] for loss in document["losses"]
                      if loss["reason"] == "evicted by cap"}
        first_ns, last = {}, {}
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if isinstance(event, otf2.events.Enter) and not event.region.name.startswith("["):
                    rank = location.group._ref
                    first_ns.setdefault(rank, event.time)
                    last[rank] = event.region.name
        # A rank may have called MPI_Finalize before the last that there is room for.
        self.assertTrue(last, "some rank has the end of the job")
        # Nor did its last records have a place where the rings were full.
        full = {loss["rank"] for loss in document["losses"] if loss["reason"] == "pool full"}
        self.assertLessEqual({name for rank, name in last.items() if rank not in full},
                             {"MPI_Finalize"})
        for rank in evicted_ns.keys() & first_ns.keys():  # the other may have filled the disk alone
            self.assertLessEqual(evicted_ns[rank], first_ns[rank])


class SmallLimits(FaultCase):
    def limited(self, limit, wait=10):
        worker = self.worker("calls", 1000)
        script = f'{limit}; exec "$@"'
        plain = run(["mpirun", "-n", 2, "bash", "-c", script, "bash", *worker])
        process = run(["mpirun", "-n", 2, "bash", "-c", script, "bash",
                       "aon-run", "-o", self.output, "--wait", wait, *worker])
        self.assert_exit(process, plain.returncode)
        self.assertEqual(sorted(process.stdout.split("\n")), sorted(plain.stdout.split("\n")))
        if plain.returncode != 0:
            self.skipTest("the program itself does not run with this limit")
        return self.finish()

    def test_few_descriptors(self):
        """Too few for an agent, then just enough for one: counters are what is left out."""
        for limit, needs_files in ((40, True), (52, False)):
            self.output = self.folder / f"job-{limit}"
            document = self.limited(f"ulimit -n {limit}")
            for rank in (0, 1):
                self.assert_every_call(document, rank)
                self.assertEqual(bool(self.rank_of(document, rank).get("fallback")), needs_files)

    def recording(self):
        """Worker processes that have a ring, or a file in its place."""
        maps = []
        for pid in worker_pids(self.counts):
            with contextlib.suppress(OSError):
                maps.append(pathlib.Path(f"/proc/{pid}/maps").read_text())
        return [text for text in maps if re.search(r"/memfd:aon-ring|/fallback-\d+-\d+", text)]

    def test_processes_leave_the_agent_what_it_needs(self):
        """40 processes and 5 late ones: some have rings, the others write files of their own."""
        script = ('ulimit -n 64; "$@" 40 & until [ -e "$0" ]; do sleep 0.1; done; "$@" 5 & wait')
        late = self.counts / "late"
        worker = [WORKER, "sleepers", self.counts]
        process = self.start("bash", "-c", f'ulimit -n 64; exec "$@"', "-", "aon-run", "-o",
                             self.output, "bash", "-c", script, late, *worker)
        wait_until(lambda: len(self.recording()) == 40, what="all record")
        late.touch()
        wait_until(lambda: len(self.recording()) == 45, what="the late ones record")
        _, agent = agent_pids(self.output)
        before_s = cpu_seconds(agent)
        time.sleep(3)
        used_s = cpu_seconds(agent) - before_s
        (self.counts / "end").touch()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertLess(used_s, 0.3, "of 3 s")
        document = self.finish()
        own_files = [bool(entry.get("fallback")) for entry in document["ranks"]]
        self.assertEqual(len(own_files), 45)
        self.assertEqual(set(own_files), {True, False})
        providers = {name: state for node in document["nodes"]
                     for name, state in node["providers"].items()}
        self.assertNotIn("disk", providers)
        self.assertTrue(list(self.output.glob("spool/*/topology.xml")))
        self.assertNotIn("topology", providers)
        self.assertIn("few file descriptors", providers["memory"]["reason"])
        self.assertIn("ulimit -n", providers["memory"]["remedy"])

    def test_no_room_for_a_ring(self):
        command = ["aon-run", "-o", self.output, "--node-memory", 1]
        process = run([*command, *self.worker("calls", 1000)])
        self.assert_exit(process)
        document = self.finish()
        entry = self.rank_of(document, 0)
        self.assertTrue(entry["fallback"])
        (memory,) = [node["providers"]["memory"] for node in document["nodes"]
                     if "memory" in node["providers"]]
        self.assertIn("no room for one more ring in the node's 1 bytes", memory["reason"])
        for place in (memory, entry["providers"]["perf"]):
            self.assertIn(memory["reason"], place["reason"])
            self.assertIn("--node-memory", place["remedy"])
        self.assertIn(f"{memory['reason']} ({memory['remedy']})", process.stderr)

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs terabytes of address space")
    def test_little_address_space(self):
        document = self.limited("ulimit -v 400000")
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    @unittest.skipIf(IS_SANITIZED, "the sanitizer needs terabytes of address space")
    def test_soft_limits_of_the_program_are_not_the_agents(self):
        for limit in ("ulimit -S -v 150000", "ulimit -S -d 20000"):
            with self.subTest(limit):
                output = self.folder / limit.split()[2]
                done = run(["bash", "-c", f"{limit}; exec aon-run -o {output} true"])
                self.assert_exit(done)
                self.assertNotIn("running without profiling", done.stderr)
                self.assertTrue(ledger(output)["job"]["complete"])

    def test_small_file_limit(self):
        """Too small for the agent's memory, which counts as a file: each rank writes its own."""
        document = self.limited("ulimit -f 8192")
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    def test_file_limit_below_what_the_state_of_large_nodes_takes(self):
        document = self.limited("ulimit -f 204800")
        self.assertTrue(document["job"]["complete"], document["job"])
        for rank in (0, 1):
            self.assert_every_call(document, rank)
            self.assertFalse(self.rank_of(document, rank).get("fallback"))

    def test_memory_of_a_rank_without_an_agent(self):
        """Of the command line, against what the environment says."""
        env = environment(AON_MEMORY="64MiB")
        script = 'ulimit -n 40; exec "$@"'
        command = ["aon-run", "-o", self.output, "--memory", "2MiB", *self.worker("calls", 1000)]
        process = run(["mpirun", "-n", 2, "bash", "-c", script, "bash", *command], env=env)
        self.assert_exit(process)
        self.assertIn(f"recording into a file; afterwards run: aon finalize {self.output}",
                      process.stderr)
        sizes = [p.stat().st_size for p in self.output.rglob("fallback-*.ring")]
        self.assertEqual(len(sizes), 2)
        for size in sizes:
            self.assertTrue(2 << 20 <= size <= 4 << 20, size)

    def test_files_of_many_processes_without_an_agent_stay_below_the_cap(self):
        """Each would take 8 MiB; those for which nothing is left are counted."""
        script = ('ulimit -n 40; exec aon-run -o "$0" --disk 8MiB '
                  'bash -c \'for i in $(seq 60); do "$@"; done\' bash "$@"')
        process = run(["bash", "-c", script, self.output, *self.worker("early", 10)])
        self.assert_exit(process)
        rings = list(self.output.rglob("fallback-*.ring"))
        self.assertLess(sum(ring.stat().st_size for ring in rings), 4 << 20)
        self.assertGreater(len(rings), 5)
        document = self.finish()
        recorded = [r for r in document["ranks"] if r.get("fallback")]
        self.assertEqual(len(recorded), len(rings))
        for entry in recorded:
            self.assertEqual(entry["counted"], 10)
        (warning,) = document["assembly"]["warnings"]
        self.assertIn(f"{60 - len(rings)} processes on ", warning)
        self.assertIn("could have neither an agent", warning)

    def test_no_files_at_all(self):
        """A write beyond the limit would end aon-run, and the program with it."""
        script = 'ulimit -S -f 0; aon-run -o "$0" --wait 2 echo ran'
        process = run(["bash", "-c", f"({script}) 2>&1 | cat; exit ${{PIPESTATUS[0]}}",
                       self.output])
        self.assert_exit(process)
        self.assertIn("running without profiling\nran\n", process.stdout)

    def test_archive_beyond_the_limit_of_files(self):
        """A write beyond it would end the command, and leave what it had begun."""
        # An archive of a sample or two would be small enough.
        process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output, "--no-assemble",
                       "--without", "sampling", *self.worker("calls", 1000)])
        self.assert_exit(process)
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        before = sorted(p.name for p in self.output.iterdir())
        for limit in (1, 8):
            with self.subTest(limit=limit):
                finalize = f"ulimit -f {limit}; exec aon finalize --quiet {self.output}"
                process = run(["bash", "-c", finalize])
                self.assert_exit(process, 1)
                self.assertRegex(process.stderr, "aon finalize: .*File (is )?too large")
                self.assertEqual(sorted(p.name for p in self.output.iterdir()), before)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank)

    def test_small_soft_file_limit(self):
        document = self.limited("ulimit -S -f 8192")
        for rank in (0, 1):
            self.assert_every_call(document, rank)
            self.assertFalse(self.rank_of(document, rank).get("fallback"), "the agent raised it")


if __name__ == "__main__":
    main()
