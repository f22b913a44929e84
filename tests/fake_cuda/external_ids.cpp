#include "tests/fake_cuda/external_ids.h"

namespace aon::fake {
namespace {

constexpr cupti::Code kInvalidParameter = 1;
constexpr cupti::Code kQueueEmpty = 18;
constexpr uint32_t kKinds = 6;  ///< 0 is none

thread_local std::vector<uint64_t> t_ids[kKinds];

bool is_kind(uint32_t kind) { return kind != 0 && kind < kKinds; }

}  // namespace

cupti::Code push_external_id(uint32_t kind, uint64_t id) {
  if (!is_kind(kind)) return kInvalidParameter;
  t_ids[kind].push_back(id);
  return cupti::kSuccess;
}

cupti::Code pop_external_id(uint32_t kind, uint64_t* id) {
  if (!is_kind(kind)) return kInvalidParameter;
  std::vector<uint64_t>& ids = t_ids[kind];
  if (ids.empty()) return kQueueEmpty;
  if (id != nullptr) *id = ids.back();
  ids.pop_back();
  return cupti::kSuccess;
}

std::vector<Record> external_records(uint32_t correlation) {
  std::vector<Record> records;
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    if (t_ids[kind].empty()) continue;
    records.push_back(external_record(kind, t_ids[kind].back(), correlation));
  }
  return records;
}

}  // namespace aon::fake
