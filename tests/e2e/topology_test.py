"""The topology in the files is the one that hwloc's HWLOC_XMLFILE names, or the machine's own."""
import unittest

import h5py
import otf2

import readers
from aon_test import BUILD, SOURCE, TestCase, environment, ledger, run

FIXTURE = SOURCE / "tests" / "replay" / "topology" / "epyc-vm-2cpu.xml"
OTHER_CPU = "A recorded CPU of another machine"


class XmlFile(TestCase):
    def record(self, xml_file, **more):
        self.output = self.folder / "job"
        worker = [BUILD / "bin" / "fault_worker", "calls", self.folder, 10]
        process = run(["mpirun", "-n", 1, "aon-run", "-o", self.output, *worker],
                      env=environment(HWLOC_XMLFILE=xml_file), cwd=self.folder, **more)
        self.assert_exit(process)
        readers.otf2_print(self, self.output)
        return process

    def other_machine(self):
        """A recorded machine that is not this one, whichever this is."""
        path = self.folder / "other.xml"
        text = FIXTURE.read_text()
        self.assertIn('value="AMD EPYC"', text)
        path.write_text(text.replace('value="AMD EPYC"', f'value="{OTHER_CPU}"')
                        .replace('local_memory="10026704896"', 'local_memory="1234567890"'))
        return path

    def packages(self):
        """Models of the packages in profile.h5, and memory of its NUMA nodes."""
        with h5py.File(self.output / "profile.h5") as file:
            table = file["topology"]
            types = [t.decode() for t in table["type"][:]]
            models = [m.decode() for m, t in zip(table["model"][:], types) if t == "package"]
            bytes_of = [int(b) for b, t in zip(table["size_bytes"][:], types) if t == "numa"]
            return models, bytes_of, types

    def node_properties(self):
        """Properties of the nodes in the archive."""
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            return {p.name: p.value for p in trace.definitions.system_tree_node_properties}

    def problem(self):
        return ledger(self.output)["nodes"][0]["providers"].get("topology")

    def assert_other_machine(self):
        models, bytes_of, types = self.packages()
        self.assertEqual(models, [OTHER_CPU])
        self.assertEqual(bytes_of, [1234567890])
        self.assertEqual((types.count("core"), types.count("pu"), types.count("cache")), (2, 2, 5))
        properties = self.node_properties()
        self.assertEqual(properties["CPU"], OTHER_CPU)
        self.assertEqual((properties["packages"], properties["cores"]), ("1", "2"))
        self.assertIsNone(self.problem())

    def assert_own_machine(self, named):
        models, bytes_of, _ = self.packages()
        self.assertNotIn(OTHER_CPU, models)
        self.assertNotIn(1234567890, bytes_of)
        self.assertGreater(sum(bytes_of), 0)
        self.assertNotEqual(self.node_properties().get("CPU"), OTHER_CPU)
        self.assertEqual(self.problem()["state"], "degraded")
        self.assertIn(str(named), self.problem()["reason"])

    def test_recorded_machine(self):
        self.record(self.other_machine())
        self.assert_other_machine()

    def test_relative_name(self):
        self.record(self.other_machine().name)
        self.assert_other_machine()

    def test_missing_file(self):
        missing = self.folder / "none.xml"
        self.record(missing)
        self.assert_own_machine(missing)

    def test_broken_file(self):
        path = self.other_machine()
        path.write_text(path.read_text()[:3000])
        self.record(path)
        self.assert_own_machine(path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
