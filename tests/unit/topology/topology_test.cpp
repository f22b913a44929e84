#include "core/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace aon::topology {
namespace {

using testing::HasSubstr;

std::map<ObjectType, int> count_types(const std::vector<Object>& objects) {
  std::map<ObjectType, int> counts;
  for (const Object& object : objects) ++counts[object.type];
  return counts;
}

class SyntheticTopology : public testing::Test {
 protected:
  void TearDown() override { unsetenv("HWLOC_SYNTHETIC"); }
  std::vector<Object> load(const char* description) {
    setenv("HWLOC_SYNTHETIC", description, 1);
    const Result<Topology> topology = Topology::load();
    EXPECT_TRUE(topology);
    EXPECT_FALSE(topology.value().is_this_system());
    return topology.value().objects();
  }
};

TEST_F(SyntheticTopology, has_one_row_per_object) {
  const auto objects = load("pack:2 numa:4 l3:2 core:8 pu:2");
  auto counts = count_types(objects);
  EXPECT_EQ(counts[ObjectType::kMachine], 1);
  EXPECT_EQ(counts[ObjectType::kPackage], 2);
  EXPECT_EQ(counts[ObjectType::kNumaNode], 8);
  EXPECT_EQ(counts[ObjectType::kCache], 16);
  EXPECT_EQ(counts[ObjectType::kCore], 128);
  EXPECT_EQ(counts[ObjectType::kPu], 256);
  EXPECT_EQ(objects[0].type, ObjectType::kMachine);
  EXPECT_EQ(objects[0].cpus, "0-255");
  EXPECT_EQ(objects[0].numa_nodes, "0-7");
}

TEST_F(SyntheticTopology, puts_parents_before_children) {
  const auto objects = load("pack:2 numa:2 core:2 pu:2");
  for (uint32_t row = 1; row < objects.size(); ++row) {
    ASSERT_TRUE(objects[row].parent) << objects[row].name;
    EXPECT_LT(*objects[row].parent, row) << objects[row].name;
  }
  const Object& last_pu = objects[1 + 2 + 8 + 16 - 1];
  ASSERT_EQ(last_pu.type, ObjectType::kPu);
  EXPECT_EQ(last_pu.name, "PU 15");
  EXPECT_EQ(objects[*last_pu.parent].name, "Core 7");
  EXPECT_EQ(last_pu.cpus, "15");
  EXPECT_EQ(last_pu.numa_nodes, "3");
}

TEST_F(SyntheticTopology, survives_xml) {
  setenv("HWLOC_SYNTHETIC", "pack:2 numa:2 l2:2 core:1 pu:1", 1);
  const Result<Topology> topology = Topology::load();
  ASSERT_TRUE(topology);
  const Result<std::string> xml = topology.value().xml();
  ASSERT_TRUE(xml);
  const Result<Topology> again = Topology::from_xml(*xml);  // HWLOC_SYNTHETIC is still set
  ASSERT_TRUE(again) << again.error().message;
  const auto before = topology.value().objects();
  const auto after = again.value().objects();
  ASSERT_EQ(before.size(), after.size());
  for (size_t row = 0; row < before.size(); ++row) {
    EXPECT_EQ(before[row].name, after[row].name);
    EXPECT_EQ(before[row].parent, after[row].parent);
    EXPECT_EQ(before[row].cpus, after[row].cpus);
  }
}

TEST(Topology, sees_this_machine) {
  const Result<Topology> topology = Topology::load();
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_TRUE(topology.value().is_this_system());
  auto counts = count_types(topology.value().objects());
  EXPECT_EQ(counts[ObjectType::kMachine], 1);
  EXPECT_GE(counts[ObjectType::kPu], 1);
}

TEST(Topology, leaves_the_binding_of_the_caller_alone) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof(before), &before);
  const Result<Topology> topology = Topology::load();
  sched_getaffinity(0, sizeof(after), &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Topology, refuses_what_is_not_hwlocs) {
  for (const char* xml : {"", "no xml", "<topology version=\"9.0\"></topology>", "<topology>"}) {
    const Result<Topology> topology = Topology::from_xml(xml);
    ASSERT_FALSE(topology) << xml;
    EXPECT_EQ(topology.error().code, Code::kDamaged);
  }
}

TEST(Topology, moves) {
  Result<Topology> topology = Topology::load();
  ASSERT_TRUE(topology);
  Topology moved = std::move(*topology);
  EXPECT_FALSE(moved.objects().empty());
}

TEST(Binding, is_that_of_the_process) {
  cpu_set_t old, one;
  sched_getaffinity(0, sizeof(old), &old);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &old)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Result<std::string> binding = binding_of(getpid());
  sched_setaffinity(0, sizeof(old), &old);
  ASSERT_TRUE(binding);
  EXPECT_EQ(*binding, std::to_string(cpu));
}

TEST(Binding, of_a_process_that_has_ended_is_an_error) {
  const Result<std::string> binding = binding_of(999999999);
  ASSERT_FALSE(binding);
  EXPECT_EQ(binding.error().code, Code::kNotFound);
  EXPECT_THAT(binding.error().message, HasSubstr("999999999"));
}

class XmlFile : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << text_of_a_machine();
    setenv("HWLOC_XMLFILE", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HWLOC_XMLFILE");
    std::filesystem::remove(path_);
  }
  static std::string text_of_a_machine() {
    setenv("HWLOC_SYNTHETIC", "pack:2 core:3 pu:1", 1);
    const Result<Topology> machine = Topology::load();
    unsetenv("HWLOC_SYNTHETIC");
    return machine.value().xml().value();
  }
  void expect_this_machine() {
    const Status status = settle_xml_file();
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr(path_.string()));
    EXPECT_EQ(getenv("HWLOC_XMLFILE"), nullptr);
    EXPECT_TRUE(Topology::load()->is_this_system());
  }
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("aon_xml_" + std::to_string(getpid()));
};

TEST_F(XmlFile, is_the_machine) {
  ASSERT_TRUE(settle_xml_file());
  EXPECT_EQ(count_types(Topology::load()->objects())[ObjectType::kPu], 6);
}

TEST_F(XmlFile, becomes_absolute) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(path_.parent_path());
  setenv("HWLOC_XMLFILE", path_.filename().c_str(), 1);
  ASSERT_TRUE(settle_xml_file());
  std::filesystem::current_path("/");
  EXPECT_EQ(count_types(Topology::load()->objects())[ObjectType::kPu], 6);
  std::filesystem::current_path(before);
}

TEST_F(XmlFile, that_is_missing_gives_this_machine) {
  std::filesystem::remove(path_);
  expect_this_machine();
}

TEST_F(XmlFile, that_is_cut_gives_this_machine) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  expect_this_machine();
}

TEST_F(XmlFile, of_unknown_objects_gives_this_machine) {
  std::string text = text_of_a_machine();
  const std::string type = "type=\"PU\"";
  text.replace(text.find(type), type.size(), "type=\"XX\"");
  std::ofstream(path_) << text;
  expect_this_machine();
}

}  // namespace
}  // namespace aon::topology
