#include "core/delivery/names.h"

#include <gtest/gtest.h>

#include <string>

namespace aon::delivery {
namespace {

TEST(DeliveryNames, files_of_a_spool_only) {
  for (const char* name :
       {"definitions.aon", "topology.xml", "p0.0.aon", "p12.345.aon", "p3.t7.1.aon", "node.0.aon",
        "fallback-123-456789.ring", "unrecorded", "unrecorded-123-456"})
    EXPECT_TRUE(is_file_name(name)) << name;
  for (const char* name :
       {"", ".", "..", "../definitions.aon", "/etc/passwd", "aon.json", "p0.0.aon/..", "p0.0.aon ",
        "P0.0.aon", "p0.0.aon.part", ".definitions.aon.part", "p-1.0.aon", "p00.0.aon",
        "fallback-.ring", "fallback-1;2.ring", "fallback-..ring", "definitions.aon\n"})
    EXPECT_FALSE(is_file_name(name)) << name;
  for (const char* name : {"unrecorded-", "unrecorded-a", "unrecorded/..", "unrecorded.aon"})
    EXPECT_FALSE(is_file_name(name)) << name;
  EXPECT_FALSE(is_file_name(std::string("fallback-") + std::string(80, '1') + ".ring"));
}

TEST(DeliveryNames, links_are_those_of_processes) {
  EXPECT_TRUE(is_link_name("unrecorded-123-456"));
  for (const char* name : {"unrecorded", "unrecorded-", "fallback-123-456.ring", "p0.0.aon"})
    EXPECT_FALSE(is_link_name(name)) << name;
}

TEST(DeliveryNames, those_of_agents_only) {
  for (const char* name : {"n1", "node-17.cluster.example", "login_2", "n1~2", "n1~1024"})
    EXPECT_TRUE(is_node_name(name)) << name;
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "n1~fallback", "n1~", "~2", "n1~2~2",
                           "n1~2a", "a b", "a\nb"})
    EXPECT_FALSE(is_node_name(name)) << name;
  EXPECT_FALSE(is_node_name(std::string(256, 'n')));
}

}  // namespace
}  // namespace aon::delivery
