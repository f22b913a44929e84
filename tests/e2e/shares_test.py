"""`aon finalize --jobs`: an archive made in shares says what that of one process says, to the last
event, row and sentence; whatever goes wrong with shares, one process does all."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import h5py
import numpy

from aon_test import BUILD, SOURCE, TestCase, environment, ledger, main, profile, run, wait_until

PROGRAMS = SOURCE / "tests" / "e2e" / "programs"
NEIGHBOURS = BUILD / "tests" / "e2e" / "mpi" / "openmpi" / "many_neighbours"
JOBS = ("--jobs", 3)
# What is about the assembly and not about the job.
OWN_KEYS = (("assembly", "seconds"), ("assembly", "shares"), ("budget", "disk_used_bytes"))


def attributes(entry):
    """Names and values; references to other entries by what they are of."""
    return {name: str(numpy.asarray(value).tolist()) for name, value in entry.attrs.items()
            if "LIST" not in name and name != "_Netcdf4Dimid"}


def tables(path):
    """Every dataset and attribute of an HDF5 file, also behind its links."""
    found = {}

    def visit(name, group):
        found[name] = attributes(group)
        for key in group:
            entry = group[key]
            if isinstance(entry, h5py.Group):
                visit(f"{name}/{key}", entry)
            else:
                values = entry[()]
                text = values.tobytes() if values.dtype.kind in "iuf" else str(values.tolist())
                found[f"{name}/{key}"] = (str(entry.dtype), text, attributes(entry))

    with h5py.File(path) as file:
        visit("", file)
    return found


def printed(anchor):
    """All of an archive, as otf2-print says it: definitions, events, mappings of locations."""
    done = run(["otf2-print", "-A", "--show-mappings", "--show-clock-offsets", anchor])
    return [line for line in done.stdout.splitlines() if not line.startswith("Trace identifier")]


def contents(output):
    """Everything a result says."""
    document = ledger(output)
    for part, key in OWN_KEYS:
        document[part].pop(key)
    samples = output / "samples" / "traces.otf2"
    return {
        "ledger": document,
        "tables": tables(output / "profile.h5"),
        "archive": printed(output / "traces.otf2"),
        "markers": run(["otf2-marker", output / "traces.otf2"]).stdout,
        "samples": printed(samples) if samples.exists() else [],
    }


def assert_same_lines(test, one, other):
    """Millions of lines: only the first that differs is shown."""
    if one == other:
        return
    for first, second in zip(one, other):
        test.assertEqual(first, second)
    test.assertEqual(len(one), len(other))


def assert_same(test, whole, shares):
    test.assertEqual(whole["ledger"], shares["ledger"])
    test.assertGreater(len(whole["archive"]), 100)
    assert_same_lines(test, whole["archive"], shares["archive"])
    assert_same_lines(test, whole["samples"], shares["samples"])
    test.assertEqual(whole["markers"], shares["markers"])
    test.assertEqual(sorted(whole["tables"]), sorted(shares["tables"]))
    for name, table in whole["tables"].items():
        test.assertEqual(table, shares["tables"][name], name)


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Shares(TestCase):
    maxDiff = 2000

    def finalize(self, *options, code=0):
        done = run(["aon", "finalize", *options, self.output])
        self.assert_exit(done, code)
        return done

    def assert_same(self):
        self.finalize()
        whole = contents(self.output)
        self.finalize(*JOBS)
        self.assertEqual(ledger(self.output)["assembly"]["shares"], JOBS[1])
        assert_same(self, whole, contents(self.output))
        has_series = bool(list((self.output / "series").glob("part-*.h5")))
        self.assertEqual(has_series, any(t.startswith("/series/") for t in whole["tables"]))
        self.assertFalse(list(self.output.glob(".assemble-*")))

    def assert_one_did_all(self, expected):
        assembly = ledger(self.output)["assembly"]
        self.assertEqual(assembly["shares"], 1)
        (warning,) = assembly["warnings"]
        self.assertRegex(warning, "assembled by one process, not in shares: " + expected)
        self.assertFalse(list(self.output.glob(".assemble-*")))
        self.assertFalse((self.output / "series").exists())
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"])
        self.assert_law(document)

    def profile(self, ranks, *command, **more):
        self.output = self.folder / "job"
        self.assert_exit(profile(ranks, self.output, *command, cwd=self.folder, **more))

    def test_steps_and_samples(self):
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 300, "--size", 1200, "--slow-rank", 2,
                     "--slow-factor", 3)
        self.assert_same()

    def test_collectives_among_neighbours(self):
        """Who waited for whom spans the shares."""
        self.profile(4, NEIGHBOURS, 5)
        self.assert_same()
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(file["waits"].attrs["collectives"], 6)

    def test_more_shares_than_processes(self):
        self.profile(2, BUILD / "bin" / "heat2d", "--steps", 20, "--size", 64)
        self.finalize("--jobs", 64)
        self.assertEqual(ledger(self.output)["assembly"]["shares"], 2)
        self.finalize("--jobs", 0)  # one per core

    def test_a_share_that_is_killed(self):
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 3000, "--size", 64)
        words = [BUILD / "bin" / "aon", "finalize", *JOBS, self.output]
        with subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL,
                              env=environment()) as finalize:
            folders = self.output / ".assemble-shares"
            share = wait_until(lambda: list(folders.glob("*/share.2.*")), what="a share")[0]
            os.kill(int(share.name.rsplit(".", 1)[1]), signal.SIGKILL)
            self.assertEqual(finalize.wait(60), 0)
        self.assert_one_did_all("the process of share 2 failed")

    @unittest.skipUnless(os.geteuid() == 0, "another user's folder needs root")
    def test_their_folder_is_taken(self):
        """Shares that cannot begin are no reason to lose the archive."""
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 20, "--size", 64)
        planted = self.output / ".assemble-shares"
        planted.mkdir()
        os.chown(planted, 65534, 65534)
        self.addCleanup(planted.rmdir)
        self.finalize(*JOBS)
        self.assertEqual(ledger(self.output)["assembly"]["shares"], 1)
        (warning,) = ledger(self.output)["assembly"]["warnings"]
        self.assertIn("File exists", warning)

    def test_all_are_killed(self):
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 3000, "--size", 64)
        words = [BUILD / "bin" / "aon", "finalize", *JOBS, self.output]
        with subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL,
                              env=environment()) as finalize:
            folders = self.output / ".assemble-shares"
            shares = wait_until(
                lambda: len(found := list(folders.glob("*/share.*"))) == 3 and found, what="shares")
            finalize.kill()
            finalize.wait()
        for share in shares:  # they do not outlive it
            pid = int(share.name.rsplit(".", 1)[1])
            wait_until(lambda p=pid: not is_alive(p), what=share.name)
        self.finalize(*JOBS)
        self.assertEqual(ledger(self.output)["assembly"]["warnings"], [])
        self.assertFalse(list(self.output.glob(".assemble-*")))

    def test_moved_elsewhere(self):
        self.profile(2, BUILD / "bin" / "heat2d", "--steps", 300, "--size", 600)
        self.finalize("--jobs", 2)
        before = tables(self.output / "profile.h5")
        moved = self.output.rename(self.folder / "moved")
        self.assertEqual(tables(moved / "profile.h5"), before)
        self.assertTrue(any(t.startswith("/series/") for t in before), "no provider has series")

    def test_what_another_node_has_put_in_the_archive_stays(self):
        """Its mark went when the archive was complete; its agent may have looked just before."""
        self.profile(2, BUILD / "bin" / "heat2d", "--steps", 20, "--size", 64)
        document = self.output / "aon.json"
        before = document.stat().st_ino
        self.finalize("--from-agent", "--node", "here")
        self.assertEqual(document.stat().st_ino, before)
        (self.output / "agents").mkdir()
        (self.output / "agents" / "here.done").write_text("a token\n")
        self.finalize("--from-agent", "--node", "here")
        self.assertNotEqual(document.stat().st_ino, before)
        self.assertFalse((self.output / "agents").exists(), "the mark has gone with it")

    def test_only_what_has_changed_is_made_again_where_that_is_asked_for(self):
        self.profile(2, BUILD / "bin" / "heat2d", "--steps", 20, "--size", 64)
        document = self.output / "aon.json"
        spool = self.output / "spool"
        files = [p for p in spool.rglob("*") if p.is_file()]

        def all_is_old():
            for path in (spool, *spool.rglob("*")):
                os.utime(path, (1e9, 1e9))

        all_is_old()
        before = document.stat().st_ino
        self.finalize("--if-needed")
        self.assertEqual(document.stat().st_ino, before)
        files[0].touch()
        self.finalize("--if-needed")
        self.assertNotEqual(document.stat().st_ino, before)
        # What was moved there is new, however old it is.
        moved = files[0].rename(self.folder / "moved")
        self.finalize()
        before = document.stat().st_ino
        all_is_old()
        os.utime(moved, (1e9, 1e9))
        moved.rename(files[0])
        self.finalize("--if-needed")
        self.assertNotEqual(document.stat().st_ino, before)

    def test_of_many_that_ask_at_once_one_makes_it(self):
        """The Epilogs of all nodes of a job, which end together."""
        self.profile(4, BUILD / "bin" / "heat2d", "--steps", 20, "--size", 64)
        document = self.output / "aon.json"
        next((self.output / "spool").rglob("*.aon")).touch()
        status = document.stat()
        made = [(status.st_ino, status.st_mtime_ns)]

        def look():
            nonlocal status
            with contextlib.suppress(FileNotFoundError):  # the moment between two of them
                status = document.stat()
            if (status.st_ino, status.st_mtime_ns) not in made:
                made.append((status.st_ino, status.st_mtime_ns))

        command = [BUILD / "bin" / "aon", "finalize", "--if-needed", self.output]
        askers = [subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True) for _ in range(6)]
        while any(asker.poll() is None for asker in askers):
            look()
        look()
        for asker in askers:
            errors = asker.communicate()[1]
            # Who comes meanwhile is told who does it.
            is_told = asker.returncode == 3 and re.search("is writing|is held by process", errors)
            self.assertTrue(asker.returncode == 0 or is_told, errors)
        self.assertIn(0, [asker.returncode for asker in askers])
        self.assertEqual(len(made), 2, "the one before and one more")
        self.assert_same()

    def test_messages_and_collectives(self):
        shutil.copy(PROGRAMS / "hpccinf.txt", self.folder)
        self.profile(4, "hpcc", timeout_s=240)  # four ranks that poll, on two cores perhaps
        self.assert_same()


if __name__ == "__main__":
    main()
