"""The same annotated program in C, C++, Fortran and Python: without AON it prints the same, under
aon-run its archives hold the same regions, steps and values."""
import ast
import math
import struct

import h5py

from annotated import RingTestCase, readers
from aon_test import BUILD, PYTHON, SOURCE, environment, ledger, main, run

MODULE = BUILD / "lib" / "aon" / "python"
FALLBACK = "import sys\nsys.modules['aon._aon'] = None\n"  # as if there were no extension
STEPS = 20
COUNTS = {"setup": 1, "step": STEPS, "halo": STEPS, "compute": STEPS, "residual": STEPS}
_STEP_COLUMNS = ("rank", "process", "loop", "step", "begin_ns", "duration_ns", "compute_ns")
_READ = """
import sys, otf2
steps, marks, values = [], [], []
with otf2.reader.open(sys.argv[1]) as trace:
    kinds = {r.name: (r.region_role, r.paradigm) for r in trace.definitions.regions}
    for location, event in trace.events:
        if isinstance(event, otf2.events.Enter):
            told = {a.name: v for a, v in (event.attributes or {}).items()}
            if event.region.name == "step":
                steps.append(told["step"])
            if "signed value" in told:
                marks.append((event.region.name, told["signed value"]))
        if isinstance(event, otf2.events.Metric):
            assert location.type == otf2.LocationType.METRIC, location
            if event.metric.members[0].name == "user::residual":
                values.append(event.values[0])
assert kinds["step"] == (otf2.RegionRole.LOOP, otf2.Paradigm.USER), kinds
assert kinds["halo"] == (otf2.RegionRole.CODE, otf2.Paradigm.USER), kinds
print(repr((steps, marks, len(values), min(values) > 0)))
"""


class Languages(RingTestCase):
    def check(self, *command, **changes):
        plain = run(command, env=environment(**changes))
        self.assert_exit(plain)
        expected = rf"^rod: {STEPS} steps, residual [0-9.]+[eE]-?\+?\d+$"
        self.assertRegex(plain.stdout.strip(), expected)
        output = self.folder / "job"
        done = run(["aon-run", "-o", output, *command], env=environment(**changes))
        self.assert_exit(done)
        self.assertEqual(done.stdout.lower(), plain.stdout.lower())
        document = ledger(output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assert_law(document)
        (rank,) = [r for r in document["ranks"] if r["emitted"]]
        self.assertIsNone(rank["rank"])
        provider = rank["providers"]["annotate"]
        self.assertEqual(provider["state"], "on")
        self.assertEqual(provider["emitted"], 2 * sum(COUNTS.values()) + STEPS + 1)
        self.assertEqual(document["assembly"]["unbalanced_regions"], 0)
        self.assert_archive(output)
        self.assert_profile(output)

    def assert_archive(self, output):
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        done = run([PYTHON, "-c", _READ, readers.archive(output)])
        self.assert_exit(done)
        expected = (list(range(STEPS)), [("done", STEPS)], STEPS, True)
        self.assertEqual(ast.literal_eval(done.stdout), expected)

    def assert_profile(self, output):
        self.assertEqual(readers.region_counts(output), COUNTS)
        readers.hdf5(self, output)
        with h5py.File(output / "profile.h5") as file:
            (process,) = [name for name in file["series"] if "user" in file["series"][name]]
            series = file["series"][process]["user"]
            self.assertEqual(len(series["residual"]), STEPS)
            unit = series["residual"].attrs["units"]
            self.assertIn(unit, ("K^2", b"K^2"))

    def test_c(self):
        self.check(BUILD / "bin" / "rod_c")

    def test_cpp(self):
        self.check(BUILD / "bin" / "rod_cpp")

    def test_fortran(self):
        program = BUILD / "bin" / "rod_fortran"
        if not program.exists():
            self.skipTest("no Fortran compiler here")
        self.check(program)

    def test_python(self):
        if not list(MODULE.glob("aon/_aon*.so")):
            self.skipTest("the extension is not built here")
        self.check(PYTHON, "-B", SOURCE / "examples" / "annotated" / "rod.py", PYTHONPATH=MODULE)

    def test_python_without_the_extension(self):
        folder = self.folder / "module" / "aon"
        folder.mkdir(parents=True)
        for name in ("__init__.py", "_fallback.py"):
            (folder / name).write_bytes((MODULE / "aon" / name).read_bytes())
        program = SOURCE / "examples" / "annotated" / "rod.py"
        self.check(PYTHON, "-B", program, PYTHONPATH=folder.parent)

    def test_python_keeps_no_more_regions_than_there_is_room_for(self):
        """A program that makes up a name at each iteration."""
        code = "for i in range(10000): aon.region(f'name {i}')\n"
        code += "print([aon.region(n) is aon.region(n) for n in ('name 0', 'name 9999')])"
        for before in ("", FALLBACK):
            command = [PYTHON, "-B", "-c", f"{before}import aon\n{code}"]
            done = run(command, env=environment(PYTHONPATH=MODULE))
            self.assert_exit(done)
            self.assertEqual(done.stdout, "[True, False]\n")

    def test_all_languages_have_the_same_table_of_steps(self):
        """/steps of profile.h5: the same steps of the same loop, one after the other, each with a
        time of its own, all of it computing."""
        python = [PYTHON, "-B", SOURCE / "examples" / "annotated" / "rod.py"]
        programs = {name: [BUILD / "bin" / f"rod_{name}"] for name in ("c", "cpp", "fortran")}
        programs = {n: p for n, p in programs.items() if p[0].exists()}
        if list(MODULE.glob("aon/_aon*.so")):
            programs["python"] = python
        self.assertGreater(len(programs), 1)
        tables = {}
        for name, command in programs.items():
            output = self.folder / name
            self.assert_exit(
                run(["aon-run", "-o", output, *command], env=environment(PYTHONPATH=MODULE))
            )
            with h5py.File(output / "profile.h5") as file:
                steps = {column: file["steps"][column][()] for column in _STEP_COLUMNS}
                self.assertEqual(file["steps"].attrs["source"], "annotated")
            self.assertTrue((steps["duration_ns"] > 0).all())
            ends = steps["begin_ns"] + steps["duration_ns"]
            self.assertTrue((ends[:-1] <= steps["begin_ns"][1:]).all())
            self.assertTrue((steps["compute_ns"] == steps["duration_ns"]).all())
            (loop,) = ledger(output)["steps"]["loops"]
            columns = (steps[c].tolist() for c in ("rank", "process", "loop", "step"))
            tables[name] = (loop["name"], loop["count"], list(zip(*columns)))
        for name, table in tables.items():
            self.assertEqual(table, tables["c"], name)
            self.assertEqual(table[:2], ("step", STEPS))
            self.assertEqual([row[-1] for row in table[2]], list(range(STEPS)))

    def test_python_path_is_told(self):
        done = run(["aon", "--python-path"])
        self.assert_exit(done)
        env = environment(PYTHONPATH=done.stdout.strip())
        self.assert_exit(run([PYTHON, "-c", "import aon; aon.mark('x')"], env=env))


class Python(RingTestCase):
    """What only Python has."""

    def python(self, code, before=""):
        code = f"{before}import aon\n{code}"
        ring = self.ring(PYTHON, "-B", "-c", code, PYTHONPATH=MODULE)
        return [(r.name, r.kind, r.a64) for r in ring.records if r.name]

    def refused(self, code):
        env = environment(PYTHONPATH=MODULE)
        done = run([PYTHON, "-B", "-c", "import aon\n" + code], env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("TypeError", done.stderr)

    def test_a_region_ends_by_an_exception_too(self):
        code = "try:\n  with aon.region('a'):\n    1 / 0\n"
        code += "except ZeroDivisionError:\n  aon.mark('b')"
        self.assertEqual([n for n, *_ in self.python(code)], ["a", "a", "b"])

    def test_decorators_with_and_without_a_name(self):
        code = "@aon.region('named')\ndef f(x): return x\n@aon.region\ndef g(x): return f(x)\n"
        code += "assert g(3) == 3 and g.__name__ == 'g'"
        self.assertEqual([n for n, *_ in self.python(code)], ["g", "named", "named", "g"])

    def test_steps_count_by_themselves(self):
        code = "for _ in range(2):\n  with aon.step(): pass\nlist(aon.steps('ab', first=10))"
        numbers = [value for name, kind, value in self.python(code) if kind == 6]
        self.assertEqual(numbers, [0, 1, 10, 11])

    def test_what_stops_and_goes_on_is_in_its_region_while_it_runs(self):
        code = """
import asyncio, inspect
@aon.region('g')
def g():
    try:
        got = yield 1
    except KeyError:
        got = 'key'
    yield got
    return 9
@aon.region('c')
async def c(x):
    await asyncio.sleep(0)
    return x
@aon.region
async def a():
    yield 1
assert inspect.isgeneratorfunction(g) and inspect.iscoroutinefunction(c)
assert inspect.isasyncgenfunction(a)
one = g()
assert next(one) == 1
aon.mark('-')
assert one.send('sent') == 'sent'
one.close()
aon.mark('-')
two = g()
assert next(two) == 1 and two.throw(KeyError) == 'key' and list(two) == []
aon.mark('-')
assert asyncio.run(c(3)) == 3
"""
        for before in ("", FALLBACK):
            said = "".join(name for name, *_ in self.python(code, before))
            self.assertEqual(said, "gg-gggg-gggggg-cccc")

    def test_what_stops_and_goes_on_holds_nothing(self):
        """Memory of a GPU, say, goes with its last reference, not when Python next looks for
        objects that hold each other."""
        code = """
import asyncio, gc, weakref
gc.disable()
class Kept: pass
kept = []
def keep():
    one = Kept()
    kept.append(weakref.ref(one))
    return one
@aon.region('g')
def g():
    local = keep()
    yield keep()
@aon.region('c')
async def c():
    local = keep()
    await asyncio.sleep(0)
one, two = g(), c()
next(one)
assert kept[0]() is not None and kept[1]() is None
two.send(None)
for stopped in one, two:
    try:
        stopped.throw(KeyError)
    except KeyError:
        pass
del one, two, stopped
assert [one() for one in kept] == [None] * 3
"""
        for before in ("", FALLBACK):
            self.assertTrue(self.python(code, before))

    def test_marks_take_numbers(self):
        code = "aon.mark('i', -1); aon.mark('f', 0.0); aon.mark('n'); aon.mark('b', -2**63)\n"
        code += "aon.mark('large', 2**63); aon.mark('small', -2**64)\n"
        code += "aon.mark('larger', 10**400); aon.mark('smaller', -10**400)"
        real = struct.pack("<4d", 2.0**63, -(2.0**64), math.inf, -math.inf)
        for before in ("", FALLBACK):
            values = [v for _, _, v in self.python(code, before)]
            self.assertEqual(values, [2**64 - 1, 0, 0, 2**63, *struct.unpack("<4Q", real)])

    def test_wrong_types_are_type_errors(self):
        for code in ("aon.region(3)", "aon.mark(b'x')", "aon.counter('x', 3)", "aon.step('x')"):
            self.refused(code)

    def test_names_may_hold_anything(self):
        names = [n for n, *_ in self.python(r"aon.mark('\u4e2d\ud800')")]
        self.assertEqual(names, ["中?"])

    def test_threads_have_their_own_regions(self):
        code = "import threading\naon.mark('m')\ndef f():\n  with aon.region('t'): pass\n"
        code += "t = threading.Thread(target=f); t.start(); t.join()"
        self.assertEqual([n for n, *_ in self.python(code)], ["m", "t", "t"])


if __name__ == "__main__":
    main()
