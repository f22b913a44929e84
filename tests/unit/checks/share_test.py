"""The share of a file's tests that AON_TEST_SHARE leaves: of the whole file, and of classes that a
command names; a single test is not left out."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
import aon_test  # noqa: E402

FILE = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(aon_test.__file__).parent)!r})
import aon_test

class First(aon_test.unittest.TestCase):
    def run_one(self):
        print("ran", self.id())
    test_a = test_b = test_c = test_d = test_e = test_f = run_one

class Second(First):
    pass

aon_test.skip_without_share()
print("asked")
aon_test.unittest.main()
"""
SHARES = 2


class Share(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "some_test.py"
        self.path.write_text(FILE)

    def ran(self, share, *names):
        """Tests that ran; none: the exit code is that of a skipped file."""
        env = {**os.environ, "AON_TEST_SHARE": share}
        done = subprocess.run([sys.executable, self.path, *names], env=env, capture_output=True,
                              text=True)  # fmt: skip
        tests = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ran ")]
        self.assertEqual(done.returncode, 0 if tests else aon_test.SKIPPED, done.stderr)
        self.assertEqual("asked\n" in done.stdout, bool(tests), "what the machine allows")
        return tests

    def assert_parted(self, *names):
        """Each test is of one share; not all are of the same."""
        whole = self.ran("", *names)
        parts = [self.ran(f"{number}/{SHARES}", *names) for number in range(SHARES)]
        self.assertEqual(sorted(sum(parts, [])), sorted(whole))
        self.assertLess(max(map(len, parts)), len(whole))
        return whole

    def test_of_a_file(self):
        self.assertEqual(len(self.assert_parted()), 12)

    def test_of_classes_that_are_named(self):
        self.assertEqual(len(self.assert_parted("Second")), 6)
        self.assertEqual(len(self.assert_parted("First", "Second")), 12)

    def test_a_single_test_is_not_left_out(self):
        for number in range(SHARES):
            ran = self.ran(f"{number}/{SHARES}", "First.test_a")
            self.assertEqual(ran, ["__main__.First.test_a"])

    def test_of_another_class_nothing_is_asked(self):
        def has(name, share):
            program = f"{self.path.name} Second {aon_test.MPI}"
            return any(aon_test.is_of_share(f"{program} __main__.{name}.test_{letter}", share)
                       for letter in "abcdef")

        shares = [f"{number}/30" for number in range(30)]
        share = next(s for s in shares if has("First", s) and not has("Second", s))
        self.assertEqual(self.ran(share, "Second"), [])


if __name__ == "__main__":
    unittest.main()
