"""Programs that are no longer what they were when they ran: what has no name keeps its module and
offset, and the ledger says why."""
import re
import shutil

from sampling import HOT, UNBOUNDED, Samples, skip_without_perf

import aon_test
from aon_test import environment, ledger, profile, run


class Modules(aon_test.TestCase):
    def sample_copy(self, *options):
        """Runs a copy of the program that the test may damage; returns its path and the output."""
        program = self.folder / "prog"
        shutil.copy(HOT, program)
        output = self.folder / "out"
        done = profile(1, output, program, 400, options=(*UNBOUNDED, *options))
        self.assert_exit(done)
        return program, output

    def finalize(self, output):
        done = run(["aon", "finalize", output])
        self.assert_exit(done)
        return ledger(output)

    def module(self, document):
        modules = document["sampling"]["modules_without_all_names"]
        return next(m for m in modules if m["module"].endswith("/prog"))

    def assert_offsets(self, output):
        names = Samples(output).by_function()
        self.assertTrue(any(name.startswith("prog+0x") for name in names), str(names))
        self.assertEqual(names["hot"], 0)

    def test_replaced_program(self):
        program, output = self.sample_copy("--no-assemble")
        program.unlink()
        shutil.copy("/bin/true", program)
        document = self.finalize(output)
        self.assertIn("build-id differs", self.module(document)["remark"])
        self.assert_offsets(output)

    def test_deleted_program(self):
        program, output = self.sample_copy("--no-assemble")
        program.unlink()
        document = self.finalize(output)
        self.assertNotEqual(self.module(document)["remark"], "")
        self.assert_offsets(output)

    def test_corrupt_program(self):
        program, output = self.sample_copy("--no-assemble")
        contents = bytearray(program.read_bytes())
        contents[16:200] = b"\xff" * 184
        program.write_bytes(contents)
        document = self.finalize(output)
        self.assertNotEqual(self.module(document)["remark"], "")
        self.assert_offsets(output)

    def test_stripped_program_and_its_debug_file(self):
        """Without symbols: offsets. With the file that --only-keep-debug left beside it: names."""
        program, output = self.sample_copy("--no-assemble")
        debug = self.folder / "prog.debug"
        self.assert_exit(run(["objcopy", "--only-keep-debug", program, debug]))
        self.assert_exit(run(["strip", program]))
        self.finalize(output)
        self.assert_offsets(output)
        self.assert_exit(run(["objcopy", f"--add-gnu-debuglink={debug}", program]))
        self.finalize(output)
        self.assertGreater(Samples(output).by_function()["hot"], 0)

    def test_debug_file_in_a_directory_of_ones_own(self):
        program, output = self.sample_copy("--no-assemble")
        told = run(["readelf", "-n", program]).stdout
        build_id = re.search(r"Build ID: (\w+)", told)[1]
        debug = self.folder / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        debug.parent.mkdir(parents=True)
        self.assert_exit(run(["objcopy", "--only-keep-debug", program, debug]))
        self.assert_exit(run(["strip", program]))
        for directories, is_known in (("/none", False), (f"/none:{self.folder}/debug", True)):
            command = ["aon", "finalize", output]
            self.assert_exit(run(command, env=environment(AON_DEBUG_DIRECTORIES=directories)))
            self.assertEqual(Samples(output).by_function()["hot"] > 0, is_known)
        self.assert_exit(run([*command, "--debug-directories", "/none"]))
        self.assertEqual(Samples(output).by_function()["hot"], 0)


if __name__ == "__main__":
    skip_without_perf()
    aon_test.unittest.main()
