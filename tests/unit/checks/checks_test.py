"""Each check of scripts/checks finds the fault it is for, and is quiet on code that is right."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts" / "checks"))

import ceilings  # noqa: E402
import layers  # noqa: E402
import order  # noqa: E402
import texts  # noqa: E402
import tidy  # noqa: E402
from common import Source, blank_comments  # noqa: E402


def messages(check, path, text, exceptions=()):
    return [str(f) for f in check.check([Source(path, text)], dict.fromkeys(exceptions, "x"))]


class Layers(unittest.TestCase):
    def test_a_plugin_may_not_see_the_core(self):
        self.assertTrue(messages(layers, "plugins/perf/a.cpp", '#include "core/ring/reader.h"\n'))
        self.assertFalse(messages(layers, "plugins/perf/a.cpp", '#include "perf/table.h"\n'))
        self.assertFalse(messages(layers, "plugins/perf/a.cpp", "#include <aon/provider.h>\n"))

    def test_a_plugin_may_not_see_another_plugin(self):
        self.assertTrue(messages(layers, "plugins/perf/a.cpp", '#include "mpi/table.h"\n'))

    def test_the_core_may_not_see_a_writer(self):
        self.assertTrue(messages(layers, "core/agent/a.cpp", '#include "writers/writer.h"\n'))
        self.assertTrue(messages(layers, "core/ring/a.cpp", '#include "core/agent/protocol.h"\n'))

    def test_a_writer_sees_the_spool_but_not_the_agent(self):
        self.assertFalse(messages(layers, "writers/otf2/a.cpp", '#include "core/spool/job.h"\n'))
        self.assertTrue(messages(layers, "writers/otf2/a.cpp", '#include "core/agent/drain.h"\n'))


class Order(unittest.TestCase):
    STORE = "x.store(1, std::memory_order_release);"
    LOAD = "x.load(std::memory_order_acquire);"

    def test_both_ends_with_one_tag_are_fine(self):
        tag = "// pairs with a:b"
        text = f"void f() {{\n  {self.STORE}  {tag}\n  {self.LOAD}  {tag}\n}}\n"
        self.assertFalse(messages(order, "core/ring/a.h", text))

    def test_the_comment_may_stand_before_a_long_statement(self):
        tag = "// pairs with a:b"
        text = f"void f() {{\n  {tag}\n  y =\n      {self.LOAD}\n  {tag}\n  {self.STORE}\n}}\n"
        self.assertFalse(messages(order, "core/ring/a.h", text))

    def test_no_tag_and_half_a_pair_are_found(self):
        self.assertTrue(messages(order, "core/ring/a.h", f"void f() {{\n  {self.LOAD}\n}}\n"))
        half = f"void f() {{\n  {self.LOAD}  // pairs with a:b\n}}\n"
        self.assertTrue(messages(order, "core/ring/a.h", half))

    def test_fences_and_unexplained_seq_cst_are_found(self):
        fence = "void f() { std::atomic_thread_fence(std::memory_order_acquire); }\n"
        self.assertTrue(messages(order, "core/ring/a.h", fence))
        strong = "void f() { x.store(1, std::memory_order_seq_cst); }\n"
        self.assertTrue(messages(order, "core/ring/a.h", strong))


class Ceilings(unittest.TestCase):
    @staticmethod
    def function(line_count, signature="int f(int a)"):
        return signature + " {\n" + "  a();\n" * (line_count - 2) + "}\n"

    def test_a_function_of_60_lines_passes_and_61_does_not(self):
        self.assertFalse(messages(ceilings, "core/a.cpp", self.function(60)))
        self.assertTrue(messages(ceilings, "core/a.cpp", self.function(61)))

    def test_members_and_constructors_are_functions_and_types_are_not(self):
        body = self.function(61, "C::C(int a)\n    : a_(a)")
        self.assertTrue(messages(ceilings, "core/a.cpp", body))
        long_type = "class C : public D {\n" + "  int a_;\n" * 70 + "};\n"
        self.assertFalse(messages(ceilings, "core/a.cpp", long_type))
        table = "constexpr Row kTable[] = {\n" + "  {1, f(2)},\n" * 70 + "};\n"
        self.assertFalse(messages(ceilings, "core/a.cpp", table))

    def test_functions_inside_namespaces_are_seen(self):
        text = "namespace a {\nnamespace {\n" + self.function(61) + "}\n}\n"
        self.assertTrue(messages(ceilings, "core/a.cpp", text))

    def test_nesting_of_five_is_found_and_initialisers_do_not_count(self):
        deep = "void f() {\n" + "if (a) {\n" * 5 + "}\n" * 5 + "}\n"
        self.assertTrue(messages(ceilings, "core/a.cpp", deep))
        flat = "void f() {\n" + "if (a) {\n" * 4 + "X b = X{Y{1}};\n" + "}\n" * 4 + "}\n"
        self.assertFalse(messages(ceilings, "core/a.cpp", flat))

    def test_an_exception_is_one_line(self):
        subject = [("function", "core/a.cpp:f")]
        self.assertFalse(messages(ceilings, "core/a.cpp", self.function(61), subject))

    def test_a_long_file_is_found(self):
        self.assertTrue(messages(ceilings, "core/a.cpp", "int a;\n" * 501))


class Tidy(unittest.TestCase):
    def test_a_header_is_looked_at_in_one_source(self):
        entries = {tidy.ROOT / f"{name}.cpp": {"command": f"g++ -o {name}.o -c {name}.cpp"}
                   for name in ("a", "b", "c")}
        common, own = tidy.ROOT / "common.h", tidy.ROOT / "c.h"
        dependencies = {"b.o": [common], "c.o": [common, own]}

        def names(*wanted):
            wanted = [tidy.ROOT / name for name in wanted]
            return [path.name for path in tidy.sources_of(wanted, entries, dependencies)]

        self.assertEqual(names("common.h"), ["b.cpp"])
        self.assertEqual(names("c.h", "c.cpp", "a.cpp"), ["a.cpp", "c.cpp"])
        self.assertEqual(names("unused.h", "not_built.cpp"), [])

    def test_what_a_lock_guards_is_not_touched_without_it(self):
        source = pathlib.Path(__file__).with_name("thread_safety.cpp")
        bad = [number for number, line in enumerate(source.read_text().splitlines(), 1)
               if line.endswith("  // bad")]
        done = subprocess.run(
            [*tidy.TIDY, f"--config-file={tidy.ROOT / '.clang-tidy'}", source, "--", "-std=c++20",
             f"-I{tidy.ROOT / 'core/include'}"], capture_output=True, text=True, check=False)
        found = re.findall(r":(\d+):\d+: error: .*clang-diagnostic-thread-safety", done.stdout)
        self.assertEqual([int(number) for number in found], bad, done.stdout + done.stderr)


class Texts(unittest.TestCase):
    def test_a_header_opens_with_a_paragraph(self):
        self.assertTrue(messages(texts, "core/a.h", "#pragma once\n"))
        self.assertFalse(messages(texts, "core/a.h", "/// The ring.\n#pragma once\n"))

    def test_units_stand_in_names(self):
        self.assertTrue(messages(texts, "core/a.h", "/// A.\nvoid f(uint64_t size);\n"))
        self.assertFalse(messages(texts, "core/a.h", "/// A.\nvoid f(uint64_t size_bytes);\n"))

    def test_a_test_has_a_name_that_reads_as_a_sentence(self):
        for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
            self.assertTrue(messages(texts, "tests/a.cpp", f"{macro}(Ring, IsEmpty) {{\n"))
            self.assertFalse(messages(texts, "tests/a.cpp", f"{macro}(Ring, is_of_MPI) {{\n"))

    def test_comments_and_strings_are_not_code(self):
        blanked = blank_comments('a("{ // no"); // { \n/* { */ R"(})" \'{\' 1\'000\n')
        self.assertNotIn("{", blanked)
        self.assertNotIn("}", blanked)


if __name__ == "__main__":
    unittest.main()
