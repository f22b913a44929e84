/// What two shares of a job hand over for a third process to combine: the first one has the groups
/// 0, 2, 4, ... and the second one 1, 3, 5, ...
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::test {

/// The bytes of each group. `feed(share, group)` gives a share all that is of the group; shares are
/// Writers or anything else with save().
template <class Share, class Feed>
std::vector<std::string> saved_by_two(const Model& model, Share* first, Share* second, Feed feed) {
  std::vector<std::string> saved;
  for (const Group& group : model.groups) {
    Share* share = group.id % 2 == 0 ? first : second;
    feed(share, group);
    StateOut out;
    if constexpr (std::is_void_v<decltype(share->save(&out))>) {
      share->save(&out);
    } else {
      const Status status = share->save(&out);
      EXPECT_TRUE(status) << status.error().message;
    }
    saved.push_back(out.bytes());
  }
  return saved;
}

/// Loads group after group. `load(in)` returns a Status, and leaves nothing of the bytes.
template <class Load>
void load_all(const std::vector<std::string>& saved, Load load) {
  for (const std::string& bytes : saved) {
    StateIn in(bytes);
    const Status status = load(&in);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(in.is_at_end());
  }
}

/// `load(in)` must fail for each beginning of `bytes` of `least_bytes` or more.
template <class Load>
void expect_beginnings_to_fail(const std::string& bytes, Load load, size_t least_bytes = 0) {
  ASSERT_LT(least_bytes, bytes.size());
  for (size_t byte_count = least_bytes; byte_count < bytes.size(); ++byte_count) {
    const std::string beginning = bytes.substr(0, byte_count);  // of its own, for the sanitizer
    StateIn in(beginning);
    const Status status = load(&in);
    ASSERT_FALSE(status) << byte_count << " of " << bytes.size();
    EXPECT_EQ(status.error().code, Code::kDamaged) << status.error().message;
  }
}

}  // namespace aon::writers::test
