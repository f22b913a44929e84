"""Which libcupti is used, and what is said where it is not the one that AON_CUPTI_LIB names."""
import json
import shutil
import unittest

from gpu_case import FAKES, PROGRAM, GpuCase, main
from aon_test import BUILD, IS_SANITIZED, environment, run

CUPTI = FAKES / "libcupti.so.13"
BROKEN = BUILD / "lib" / "libtools_broken_library.so"


class LibraryCase(GpuCase):
    def setUp(self):
        super().setUp()
        self.alone = self.folder / "driver"  # without a libcupti
        self.alone.mkdir()
        for file in FAKES.glob("libcuda.so*"):
            shutil.copy(file, self.alone)
        self.wrong = {  # what AON_CUPTI_LIB says, and what is said of it
            "lib/libcupti.so.13": "lib/libcupti.so.13 is no absolute path",
            str(self.folder / "libcupti.so.13"): "cannot open shared object file",
            str(FAKES / "libcuda.so.1"): "libcuda.so.1 is no libcupti"}  # fmt: skip


class Ledger(LibraryCase):
    def run_with(self, path, **knobs):
        shutil.rmtree(self.folder / "job", ignore_errors=True)
        self.run_program(10, 1, ranks=1, AON_CUPTI_LIB=path, **knobs)

    def test_one_that_was_told_is_used_without_a_word(self):
        self.run_with(CUPTI, LD_LIBRARY_PATH=self.alone)
        self.assertEqual(self.provider()["state"], "on", self.provider())
        self.assertEqual(self.provider()["reason"], "")
        self.assert_all_kernels()

    def test_one_that_cannot_be_is_told_with_the_one_that_is_used(self):
        for path, said in self.wrong.items():
            with self.subTest(path):
                self.run_with(path)
                self.assert_all_kernels()
                provider = self.provider()
                self.assertEqual(provider["state"], "degraded")
                self.assertIn(said, provider["reason"])
                self.assertIn(f"{CUPTI} is used instead", provider["reason"])
                self.assertIn("absolute path of libcupti", provider["remedy"])
                self.assertIn("not collected: cupti degraded on 1 process: AON_CUPTI_LIB",
                              self.process.stderr)

    def test_one_that_cannot_be_is_told_where_there_is_no_other(self):
        path = self.folder / "libcupti.so.13"
        self.run_with(path, LD_LIBRARY_PATH=self.alone)
        provider = self.provider()
        self.assertEqual(provider["state"], "off", provider)  # NVIDIA's own needs a driver
        self.assertRegex(provider["reason"], "no libcupti.so.13 or libcupti.so.12 was found|"
                                             "libcupti.so.1[23] is used instead")
        self.assertIn(f"AON_CUPTI_LIB: {path}: cannot open", provider["reason"])
        self.assertIn("absolute path of libcupti", provider["remedy"])

    @unittest.skipIf(IS_SANITIZED, "the sanitizer's runtime must come first in LD_PRELOAD")
    def test_the_one_that_the_program_has_is_told(self):
        other = shutil.copy(CUPTI, self.folder / "other.so")
        self.run_with(other, LD_PRELOAD=CUPTI)
        provider = self.provider()
        self.assertEqual(provider["state"], "on", provider)
        self.assertIn(f"the program has loaded {CUPTI}, which is used instead of {other}",
                      provider["reason"])


class Settings(GpuCase):
    def test_values_that_are_none_are_told(self):
        self.run_program("AON_CUPTI_MODE=Off", "AON_CUPTI_MEMORY=much", PROGRAM, 10, 1,
                         program="env", ranks=1)  # aon-run itself refuses them
        self.assert_all_kernels()
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("AON_CUPTI_MODE=Off is none of exclusive, yield, off: it is exclusive; "
                      "AON_CUPTI_MEMORY=much is no number of MiB", self.provider()["reason"])
        self.assertIn("not collected: cupti degraded on 1 process: AON_CUPTI_MODE=Off",
                      self.process.stderr)

    def test_ends_of_contexts_that_are_not_told_to_us_are_told(self):
        """Work is lost with a context, where it is not flushed before."""
        self.run_program(10, 1, ranks=1, FAKE_CUPTI_ERROR="cuptiEnableCallback:3+")
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("not recorded: last work of contexts that end", self.provider()["reason"])
        self.assert_all_kernels()


class Doctor(LibraryCase):
    def check(self, **variables):
        process = run(["aon", "doctor", "--json"], env=environment(**variables))
        self.assert_exit(process)
        return {c["name"]: c for c in json.loads(process.stdout)}["CUPTI"]

    def test_names_no_cupti_that_is_not_used(self):
        old = self.folder / "old"
        old.mkdir()
        (old / "libcupti.so.11.8").symlink_to(CUPTI)
        self.assertNotIn("11.8", self.check(LD_LIBRARY_PATH=old)["detail"])

    def test_names_the_one_that_was_told(self):
        self.assertIn(str(CUPTI), self.check(AON_CUPTI_LIB=CUPTI)["detail"])

    def test_names_the_version_and_whether_several_can_use_it(self):
        detail = self.check(AON_CUPTI_LIB=CUPTI, FAKE_CUPTI_VERSION=130001)["detail"]
        self.assertIn("version 130001 (CUDA 13.0 update 1); one client at a time (several: ",
                      detail)
        detail = self.check(AON_CUPTI_LIB=CUPTI, FAKE_CUPTI_VERSION=130300)["detail"]
        self.assertIn("version 130300 (CUDA 13.3); several clients at a time", detail)

    def test_says_that_the_one_that_was_told_cannot_be(self):
        for path, said in self.wrong.items():
            with self.subTest(path):
                check = self.check(AON_CUPTI_LIB=path, LD_LIBRARY_PATH=FAKES)
                self.assertIn(said, check["detail"])
                self.assertIn(f"{CUPTI} is used instead", check["detail"])
                self.assertIn("absolute path of libcupti", check["remedy"])

    def test_names_the_one_that_crashes_and_not_the_one_that_was_told(self):
        crashing = self.folder / "crashing"
        crashing.mkdir()
        (crashing / "libcupti.so.13").symlink_to(BROKEN)
        for path, said in self.wrong.items():
            with self.subTest(path):
                check = self.check(AON_CUPTI_LIB=path, LD_LIBRARY_PATH=crashing)
                self.assertEqual(check["state"], "no")
                self.assertIn("loading libcupti.so.13 ends the process", check["detail"])
                self.assertIn(said, check["detail"])
                self.assertIn("absolute path of libcupti", check["remedy"])
        check = self.check(AON_CUPTI_LIB=BROKEN)
        self.assertIn(f"loading {BROKEN} ends the process", check["detail"])

    def test_says_why_of_paths_that_are_long_or_no_text(self):
        no_text = b"\xff\xfe".decode(errors="surrogateescape")
        for name in ("x" + 100 * "ü" + "/" + 100 * "ü", no_text):
            with self.subTest(name):
                check = self.check(AON_CUPTI_LIB=self.folder / name, LD_LIBRARY_PATH=FAKES)
                self.assertIn("cannot open shared object file", check["detail"])
                self.assertIn(f"{CUPTI} is used instead", check["detail"])


if __name__ == "__main__":
    main()
