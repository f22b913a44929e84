// Recorded machines (`lstopo --filter io:important --of xml`, names and addresses removed) -> the
// flat table as text, compared with MACHINE.txt beside it. AON_UPDATE_FIXTURES=1 writes it anew.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/topology/topology.h"

extern const char* const kFixtures;  // the build writes it

namespace aon::topology {
namespace {

std::string fixture(const std::string& name) { return std::string(kFixtures) + "/" + name; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string table_of(const Topology& topology) {
  std::ostringstream text;
  for (const Object& o : topology.objects()) {
    text << type_name(o.type) << ' ' << o.logical_index << " '" << o.name << "' in "
         << (o.parent ? static_cast<int>(*o.parent) : -1) << " cpus " << o.cpus << " numa "
         << o.numa_nodes;
    if (o.size_bytes != 0) text << " bytes " << o.size_bytes;
    if (!o.pci_address.empty()) text << " pci " << o.pci_address;
    if (!o.model.empty()) text << " model '" << o.model << "'";
    text << '\n';
  }
  return text.str();
}

TEST(RecordedMachine, gives_the_table_that_was_checked_by_hand) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".xml") continue;
    ++machines;
    const Result<Topology> topology = Topology::from_xml(read_file(entry.path()));
    ASSERT_TRUE(topology) << entry.path() << ": " << topology.error().message;
    const std::string table = table_of(topology.value());
    const std::filesystem::path expected =
        std::filesystem::path(entry.path()).replace_extension(".txt");
    if (getenv("AON_UPDATE_FIXTURES") != nullptr) std::ofstream(expected) << table;
    EXPECT_EQ(table, read_file(expected)) << entry.path();
  }
  EXPECT_GE(machines, 1);
}

TEST(RecordedMachine, is_what_HWLOC_XMLFILE_names) {
  setenv("HWLOC_XMLFILE", fixture("epyc-vm-2cpu.xml").c_str(), 1);
  const Result<Topology> topology = Topology::load();
  unsetenv("HWLOC_XMLFILE");
  ASSERT_TRUE(topology);
  EXPECT_FALSE(topology.value().is_this_system());
  EXPECT_EQ(table_of(topology.value()), read_file(fixture("epyc-vm-2cpu.txt")));
}

/// The recorded machine with more PCI devices put on its bus.
class AddedDevices : public testing::Test {
 protected:
  std::vector<Object> devices(const std::string& pci_objects) {
    std::string xml = read_file(fixture("epyc-vm-2cpu.xml"));
    const size_t bridge = xml.find("<object type=\"Bridge\"");
    const size_t inside = xml.find('>', bridge) + 1;
    xml.insert(inside, pci_objects);
    const Result<Topology> topology = Topology::from_xml(xml);
    EXPECT_TRUE(topology);
    std::vector<Object> found;
    for (const Object& o : topology.value().objects()) {
      if (o.type == ObjectType::kGpu || o.type == ObjectType::kNic) found.push_back(o);
    }
    return found;
  }
  static std::string pci(int number, const char* type, const std::string& os_devices = "") {
    const std::string n = std::to_string(number);
    return "<object type=\"PCIDev\" gp_index=\"9" + n + "\" pci_busid=\"0000:00:1" + n +
           ".0\" pci_type=\"" + type + "\" pci_link_speed=\"0.0\">" + os_devices + "</object>";
  }
  static std::string os(int number, const char* name, int type) {
    return "<object type=\"OSDev\" gp_index=\"19" + std::to_string(number) + "\" name=\"" + name +
           "\" osdev_type=\"" + std::to_string(type) + "\"/>";
  }
};

TEST_F(AddedDevices, are_gpus_also_when_they_are_only_on_the_pci_bus) {
  const auto found = devices(pci(1, "0302 [10de:20b0] [10de:1450] a1"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "GPU 0000:00:11.0");
  EXPECT_EQ(found[0].pci_address, "0000:00:11.0");
  EXPECT_EQ(found[0].numa_nodes, "0");
  EXPECT_EQ(found[0].cpus, "0-1");
}

TEST_F(AddedDevices, are_one_row_under_their_best_name) {
  const auto found =
      devices(pci(1, "0302 [10de:20b0] [10de:1450] a1",
                  os(1, "card1", 1) + os(2, "cuda0", 5) + os(3, "nvml0", 1)) +
              pci(2, "0207 [15b3:101b] [15b3:0007] 00", os(4, "ib0", 2) + os(5, "mlx5_0", 3)));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "nvml0");
  EXPECT_EQ(found[0].type, ObjectType::kGpu);
  EXPECT_EQ(found[1].name, "mlx5_0");
  EXPECT_EQ(found[1].type, ObjectType::kNic);
}

TEST_F(AddedDevices, are_no_gpus_when_they_only_drive_a_console) {
  const auto found = devices(pci(1, "0300 [1a03:2000] [1a03:2000] 41", os(1, "card0", 1)) +
                             pci(2, "0200 [8086:1521] [8086:1521] 01"));
  ASSERT_EQ(found.size(), 2u);  // two NICs
  EXPECT_EQ(found[0].type, ObjectType::kNic);
}

}  // namespace
}  // namespace aon::topology
