"""A spool that came to harm: cut short, with flipped bits, with a hole. Damage costs the blocks it
hits, they are counted against the program's own count, and the archive is made of the rest."""
import os
import random
import unittest

from fault_test import IS_SANITIZED, FaultCase, agent_pids, run, wait_until

CALLS = 60_000


class Damaged(FaultCase):
    def setUp(self):
        super().setUp()
        process = run(["mpirun", "-n", 2, "aon-run", "-o", self.output, "--no-assemble",
                       "--memory", "64MiB", *self.worker("calls", CALLS)])
        self.assert_exit(process)
        # Until then it writes.
        wait_until(lambda: not agent_pids(self.output), 60, what="the agent's end")
        self.segments = sorted(
            (p for p in (self.output / "spool").rglob("p*.aon") if p.stat().st_size > 4096),
            key=lambda path: path.stat().st_size)
        self.assertGreaterEqual(len(self.segments), 1)

    def harm(self, change):
        """Changes the largest segment; the ledger afterwards."""
        path = self.segments[-1]
        data = bytearray(path.read_bytes())
        path.write_bytes(change(data))
        document = self.finish()
        for rank in (0, 1):
            made, seen, entry = self.assert_every_call(document, rank)
            self.assertEqual(made, CALLS)
            self.assertLessEqual(seen, entry["spooled"])
            self.assertEqual(entry["spooled"] + entry["lost"], CALLS + 2)
        return document

    def damaged(self, losses):
        """Beside those only what found no room beside a sanitized agent that gets no CPU."""
        others = {loss["reason"] for loss in losses if loss["reason"] != "damaged"}
        self.assertLessEqual(others, {"pool full"} if IS_SANITIZED else set())
        return [loss for loss in losses if loss["reason"] == "damaged"]

    def lost(self, document):
        damaged = self.damaged(document["losses"])
        ranks = {loss["rank"] for loss in damaged}
        self.assertEqual(len(ranks), 1, "the other rank has lost nothing")
        lost = sum(loss["count"] for loss in damaged)
        self.assertLess(lost, CALLS, "the rest of the rank is there")
        return lost

    def test_truncated(self):
        document = self.harm(lambda data: data[: len(data) // 2])
        self.assertGreater(self.lost(document), 0)

    def test_cut_inside_the_last_block(self):
        document = self.harm(lambda data: data[:-1])
        # Whichever the block had.
        self.assertTrue(self.damaged(document["losses"]) + self.damaged(document["lost_samples"]))

    def test_one_flipped_bit(self):
        def flip(data):
            data[len(data) // 2] ^= 0x10
            return data

        document = self.harm(flip)
        self.assertGreater(self.lost(document), 0)
        self.assertEqual(document["assembly"]["damaged_blocks"], 1)

    def test_hole(self):
        def clear(data):
            start = len(data) // 3
            data[start : start + 2048] = bytes(2048)
            return data

        document = self.harm(clear)
        self.assertGreater(self.lost(document), 0)

    def test_noise_everywhere(self):
        chance = random.Random(7)

        def scatter(data):
            for _ in range(40):
                data[chance.randrange(len(data))] = chance.randrange(256)
            return data

        self.harm(scatter)

    def test_definitions_cut_short(self):
        """Without the ends of processes nothing can be compared; nothing may break."""
        (path,) = (self.output / "spool").rglob("definitions.aon")
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        document = self.finish()
        self.assertFalse(document["job"]["complete"])

    def harm_definitions(self, change):
        """Nothing is concluded from what may be missing, and it is said."""
        (path,) = (self.output / "spool").rglob("definitions.aon")
        change(path)
        document = self.finish()
        self.assertFalse(document["job"]["complete"])
        self.assertIn("definitions in its spool are damaged", document["job"]["reason"])
        self.assertTrue([w for w in document["assembly"]["warnings"] if "definitions" in w])
        for finding in document["findings"]:
            self.assertNotRegex(finding, "outside MPI|takes|waits")

    def test_definitions_with_flipped_bytes(self):
        def scatter(path):
            data = bytearray(path.read_bytes())
            for at in range(300, len(data), len(data) // 40):
                data[at] ^= 0x55
            path.write_bytes(data)

        self.harm_definitions(scatter)

    def test_definitions_gone(self):
        self.harm_definitions(lambda path: path.unlink())

    def test_samples_cut_short_or_gone(self):
        """What was sampled is in a file of its own; the agent's count says how much is missing."""
        (path,) = (self.output / "spool").rglob("node.0.aon")
        data = path.read_bytes()
        for change in (lambda: path.write_bytes(data[: len(data) // 2]), path.unlink):
            change()
            document = self.finish()
            self.assertEqual({loss["reason"] for loss in document["lost_samples"]}, {"damaged"})

    def test_pipes_in_place_of_files(self):
        """Whoever reads a folder of others waits for nobody."""
        self.finish()
        for name in ("aon.json", "summary.txt", "p0.0.aon", "definitions.aon", "topology.xml"):
            (path,) = self.output.rglob(name)
            content = path.read_bytes()
            path.unlink()
            os.mkfifo(path)
            for command in ("info", "hang", "finalize"):
                process = run(["aon", command, self.output], timeout_s=20)
                self.assertLess(process.returncode, 3, f"{command} {name}: {process.stderr}")
            path.unlink()
            path.write_bytes(content)


if __name__ == "__main__":
    unittest.main()
