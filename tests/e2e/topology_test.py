"""The topology in the files is the one that hwloc's variables name, or the machine's own."""
import collections
import unittest

import h5py
import otf2

import readers
from aon_test import BUILD, SOURCE, TestCase, environment, ledger, run

FIXTURE = SOURCE / "tests" / "replay" / "topology" / "epyc-vm-2cpu.xml"
OTHER_CPU = "A recorded CPU of another machine"


class Machine(TestCase):
    def record_with(self, *command, **variables):
        """`command` starts aon-run."""
        self.output = self.folder / "job"
        worker = [BUILD / "bin" / "fault_worker", "calls", self.folder, 10]
        process = run(["mpirun", "-n", 1, *command, "aon-run", "-o", self.output, *worker],
                      env=environment(**variables), cwd=self.folder)
        self.assert_exit(process)
        readers.otf2_print(self, self.output)


class SystemTree(Machine):
    """What hwloc sees in a node is below it in the archive."""

    def tree(self):
        """{number: (class, name, number of its parent, domains, properties)} below the node."""
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            known = trace.definitions
            nodes = {n._ref: [n.class_name, n.name, n.parent and n.parent._ref, [], {}]
                     for n in known.system_tree_nodes}
            for domain in known.system_tree_node_domains:
                kind = str(domain.system_tree_node_domain).rpartition(".")[2]
                nodes[domain.system_tree_node._ref][3].append(kind)
            for one in known.system_tree_node_properties:
                nodes[one.system_tree_node._ref][4][one.name] = one.value
            (group,) = [g for g in known.location_groups if g.name == "MPI Rank 0"]
            self.assertEqual(nodes[group.system_tree_parent._ref][0], "node")
        return nodes

    def hardware(self):
        """Without the node's own properties, of which some are this run's."""
        return [row[:4] + [row[4] if row[0] != "node" else {}] for row in self.tree().values()]

    def test_hardware_of_a_described_machine(self):
        self.record_with(HWLOC_SYNTHETIC="package:2 [numa] l3:2 l2:4 core:1 pu:2")
        nodes = self.tree()
        found = collections.Counter((row[0], *row[3]) for row in nodes.values())
        # An L2 cache has one core here and is left out.
        self.assertEqual(found, {("machine", "MACHINE"): 1, ("node", "SHARED_MEMORY"): 1,
                                 ("package", "SOCKET"): 2, ("NUMA node", "NUMA"): 2,
                                 ("cache", "CACHE"): 4, ("core", "CORE"): 16})
        for kind, parent in (("node", "machine"), ("package", "node"), ("NUMA node", "package"),
                             ("cache", "package"), ("core", "cache")):
            parents = {nodes[row[2]][0] for row in nodes.values() if row[0] == kind}
            self.assertEqual(parents, {parent}, kind)
        (last,) = [row for row in nodes.values() if row[1] == "Core 15"]
        self.assertEqual(last[4]["hardware threads"], "30-31")
        self.assertEqual(nodes[last[2]][1], "L3 cache 3")

    def test_own_machine(self):
        self.record_with()
        kinds = {row[0] for row in self.tree().values()}
        self.assertLessEqual({"machine", "node", "package", "core"}, kinds)

    def test_own_machine_is_kept_for_the_next_job(self):
        session = self.folder / "session"
        session.mkdir(mode=0o700)
        self.record_with(XDG_RUNTIME_DIR=session)
        (kept,) = session.glob("aon/topology-*")
        first, written = self.hardware(), kept.stat().st_mtime_ns
        self.output.rename(self.folder / "first")
        self.record_with(XDG_RUNTIME_DIR=session)
        self.assertEqual(self.hardware(), first)
        self.assertEqual(kept.stat().st_mtime_ns, written)
        (name,) = (path.name for path in session.glob("aon/*"))
        self.assertEqual(name, kept.name)


class XmlFile(Machine):
    def record(self, xml_file):
        self.record_with(HWLOC_XMLFILE=xml_file)

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
        """Properties of the node in the archive."""
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            return {p.name: p.value for p in trace.definitions.system_tree_node_properties
                    if p.system_tree_node.class_name == "node"}

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

    def test_file_that_hwloc_dies_of(self):
        """As libhwloc 2.9 does where the machine has no complete_cpuset."""
        path = self.other_machine()
        text = path.read_text()
        self.assertIn(" complete_cpuset=", text)
        path.write_text(text.replace(" complete_cpuset=", " compdete_cpuset=", 1))
        self.record_with("env", f"HWLOC_XMLFILE={path}")  # mpirun would die of it
        if self.problem() is None:
            self.skipTest("this hwloc can read it")
        self.assert_own_machine(path)

    def test_damaged_in_the_spool(self):
        self.record_with()
        path, = self.output.glob("spool/*/topology.xml")
        path.write_text(path.read_text().replace(" complete_cpuset=", " compdete_cpuset=", 1))
        process = run(["aon", "finalize", self.output])
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(self.problem()["reason"], "topology.xml of the spool is damaged")


if __name__ == "__main__":
    unittest.main(verbosity=2)
