"""Programs of g++'s sanitizers: they run, are recorded and end as without AON, and what a sanitizer
finds is found. AddressSanitizer insists on being the first library of all."""

from fault_test import FaultCase, environment, main, run

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int size_bytes = argc > 1 ? atoi(argv[1]) : 8;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 20; ++i) MPI_Barrier(MPI_COMM_WORLD);
  char* text = malloc(8);
  for (volatile int i = 0; i < size_bytes; ++i) text[i] = 'x';
  printf("%.8s\\n", text);
  free(text);
  MPI_Finalize();
  return 7;
}
"""
CHILD = "int main(void) { __builtin_malloc(8); return 0; }"
WITHOUT_LEAKS = "detect_leaks=0"  # Open MPI has some


class Sanitized(FaultCase):
    def program(self, sanitizer, text=PROGRAM):
        source = self.folder / "program.c"
        source.write_text(text)
        program = self.folder / sanitizer
        self.assert_exit(run(["mpicc", "-g", f"-fsanitize={sanitizer}", source, "-o", program]))
        return program

    def same(self, code, *command, ranks=2, **variables):
        """Recorded in full, and exit code and output are as without AON; returns what it said."""
        launcher = ["mpirun", "-n", ranks]
        env = environment(**variables)
        plain = run([*launcher, *command], env=env)
        self.assert_exit(plain, code)
        recorded = run([*launcher, "aon-run", "-o", self.output, "--", *command], env=env)
        self.assert_exit(recorded, code)
        self.assertEqual(recorded.stdout, plain.stdout)
        self.assertEqual(len(self.finish()["ranks"]), ranks)
        self.assertEqual(self.profile_count(0, "MPI_Barrier"), 20)
        return recorded.stderr

    def test_address(self):
        self.same(7, self.program("address"), ASAN_OPTIONS=WITHOUT_LEAKS)

    def test_an_error_is_found(self):
        said = self.same(1, self.program("address"), "9", ranks=1, ASAN_OPTIONS=WITHOUT_LEAKS)
        self.assertIn("heap-buffer-overflow", said)

    def test_leaks_are_found(self):
        """With its exit code, and none of them is ours. What it says of libraries without the name
        of a function may be wrong: it looks addresses of those that were closed up among what
        it has mapped since, to read symbols."""
        said = self.same(9, self.program("address"), ranks=1, ASAN_OPTIONS="exitcode=9")
        self.assertIn("detected memory leaks", said)
        self.assertNotRegex(said, r"#\d+ \w+ in .*(libaon|plugins/mpi|core/runtime)")

    def test_started_by_a_script(self):
        command = ["sh", "-c", '"$0"; echo $?; exit 3', self.program("address")]
        self.same(3, *command, ASAN_OPTIONS=WITHOUT_LEAKS)

    def test_what_it_starts_is_not_sanitized(self):
        """A child that leaks ends as it does, and with no word about it."""
        child = self.folder / "child"
        (self.folder / "child.c").write_text(CHILD)
        self.assert_exit(run(["gcc", self.folder / "child.c", "-o", child]))
        look = f'free(text);\n  printf("%d\\n", system("{child}")); fflush(stdout);'
        program = self.program("address", PROGRAM.replace("free(text);", look))
        said = self.same(9, program, ranks=1, ASAN_OPTIONS="exitcode=9")
        self.assertEqual(said.count("detected memory leaks"), 1)

    def test_others(self):
        for sanitizer, variable in (("thread", "TSAN_OPTIONS"), ("undefined", "UBSAN_OPTIONS"),
                                    ("leak", "LSAN_OPTIONS")):
            with self.subTest(sanitizer=sanitizer):
                self.output = self.folder / f"job-{sanitizer}"
                options = {variable: WITHOUT_LEAKS} if sanitizer == "leak" else {}
                self.same(7, self.program(sanitizer), **options)

    def test_the_users_preload_is_still_told_of(self):
        """As without AON: the sanitizer ends the program."""
        program = self.program("address")
        env = environment(LD_PRELOAD="libm.so.6")
        for command in ([program], ["aon-run", "-o", self.output, "--", program]):
            process = run(command, env=env)
            self.assert_exit(process, 1)
            self.assertIn("does not come first", process.stderr)


if __name__ == "__main__":
    main()
