/// The ledger of a job directory of tests, and its law.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::test {

using nlohmann::json;

/// Regions of a process that makes one call.
inline const std::vector<std::pair<std::string, RegionRole>> kRegions = {
    {"MPI_Send", RegionRole::kPointToPoint}};

inline json read_ledger(const std::filesystem::path& job) {
  std::ifstream file(job / "aon.json");
  return json::parse(file);
}

/// Fails unless emitted = spooled + lost holds everywhere.
inline void expect_law(const json& ledger) {
  for (const json& rank : ledger["ranks"]) {
    uint64_t emitted = 0;
    for (const json& thread : rank["threads"]) {
      EXPECT_EQ(thread["emitted"].get<uint64_t>(),
                thread["spooled"].get<uint64_t>() + thread["lost"].get<uint64_t>());
      emitted += thread["emitted"].get<uint64_t>();
    }
    EXPECT_EQ(rank["emitted"].get<uint64_t>(), emitted);
    EXPECT_EQ(rank["emitted"].get<uint64_t>(),
              rank["spooled"].get<uint64_t>() + rank["lost"].get<uint64_t>());
  }
}

inline uint64_t lost_for(const json& ledger, const std::string& reason) {
  uint64_t sum = 0;
  for (const json& loss : ledger["losses"]) {
    if (loss["reason"] == reason) sum += loss["count"].get<uint64_t>();
  }
  return sum;
}

inline std::vector<Record> spans(uint64_t count, uint64_t from = 1000) {
  std::vector<Record> records;
  for (uint64_t i = 0; i < count; ++i) {
    records.push_back(span_record(1, from + i * 100, from + i * 100 + 50));
  }
  return records;
}

}  // namespace aon::test
