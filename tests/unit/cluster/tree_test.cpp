#include "core/cluster/tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace aon::cluster {
namespace {

std::vector<std::string> many(size_t count) {
  std::vector<std::string> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(fmt::format("n{:04}", i));
  return nodes;
}

TEST(Tree, root_has_no_parent) {
  EXPECT_THAT(parent_candidates(many(5), "n0000"), testing::IsEmpty());
  EXPECT_THAT(parent_candidates({}, "n"), testing::IsEmpty());
}

TEST(Tree, parent_is_asked_first_then_its_ancestors_then_all_before) {
  const std::vector<std::string> candidates = parent_candidates(many(80), "n0074");
  ASSERT_EQ(candidates.size(), 74u);
  EXPECT_EQ(candidates[0], "n0009");
  EXPECT_EQ(candidates[1], "n0001");
  EXPECT_EQ(candidates[2], "n0000");
  EXPECT_EQ(candidates[3], "n0002");
}

TEST(Tree, node_without_an_address_of_its_own_has_parents_too) {
  EXPECT_THAT(parent_candidates({"a", "c"}, "b"), testing::ElementsAre("a"));
}

TEST(Tree, no_node_of_1250_is_more_than_four_hops_from_the_root) {
  const std::vector<std::string> nodes = many(1250);
  std::vector<size_t> children(nodes.size());
  for (const std::string& node : nodes) {
    size_t hops = 0;
    for (std::string at = node;; ++hops) {
      const auto candidates = parent_candidates(nodes, at);
      if (candidates.empty()) break;
      ASSERT_LT(candidates[0], at);
      at = candidates[0];
      if (hops == 0) ++children[static_cast<size_t>(std::stoi(at.substr(1)))];
    }
    EXPECT_LE(hops, 4u) << node;
  }
  EXPECT_EQ(*std::max_element(children.begin(), children.end()), kFanOut);
}

}  // namespace
}  // namespace aon::cluster
