"""What is told of devices: names, UUIDs, and where they are. Driver and CUPTI are made up."""
import otf2
from gpu_case import GpuCase, main
from aon_test import SOURCE


class Devices(GpuCase):
    def test_devices_are_named(self):
        self.run_program(5, 1)
        rows = {r["rank"]: r for r in self.table("devices")}
        self.assertEqual(rows[0]["name"], "Fake GPU A")
        self.assertEqual(rows[1]["address"], "0000:02:00.0")
        self.assertTrue(rows[0]["uuid"].startswith("GPU-01010101-0101"))
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            known = trace.definitions.location_group_properties
            told = {(p.location_group.name, p.name): p.value for p in known}
        self.assertEqual(told["GPU 0 of MPI Rank 0", "device"], "Fake GPU A")
        self.assertEqual(told["GPU 0 of MPI Rank 0", "uuid"], rows[0]["uuid"])

    def test_devices_are_placed_in_the_topology(self):
        """By their address on the bus: the recorded machine has one of the two."""
        recorded = SOURCE / "tests" / "replay" / "topology" / "epyc-vm-2cpu.xml"
        xml = recorded.read_text()
        at = xml.index(">", xml.index('<object type="Bridge"')) + 1
        gpu = ('<object type="PCIDev" gp_index="91" pci_busid="0000:01:00.0" '
               'pci_type="0302 [10de:20b0] [10de:1450] a1" pci_link_speed="0.0"></object>')
        machine = self.folder / "machine.xml"
        machine.write_text(xml[:at] + gpu + xml[at:])
        self.run_program(5, 1, HWLOC_XMLFILE=machine)
        rows = {r["rank"]: r for r in self.table("devices")}
        self.assertEqual((rows[0]["cpus"], rows[0]["numa_nodes"]), ("0-1", "0"))
        self.assertEqual((rows[1]["cpus"], rows[1]["numa_nodes"]), ("", ""))
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            known = trace.definitions.system_tree_node_properties
            placed = [(p.system_tree_node.class_name, p.system_tree_node.name, p.value)
                      for p in known if p.name == "bus address"]
        self.assertIn(("GPU", "GPU 0000:01:00.0", "0000:01:00.0"), placed)


if __name__ == "__main__":
    main()
