#include "writers/steps/calls.h"

#include <algorithm>
#include <iterator>

namespace aon::writers::steps {
namespace {

bool is_uncounted(const std::string& name) {
  constexpr const char* kBegins[] = {
      "MPI_Test",    "MPI_Iprobe", "MPI_Improbe", "MPI_Init", "MPI_Request_get_status",
      "MPI_Finalize"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](const char* begin) { return name.rfind(begin, 0) == 0; });
}

/// 0 for no bytes, then one number per power of four.
uint64_t rough_size(uint64_t bytes) {
  return bytes == 0 ? 0 : 1 + (63 - static_cast<uint64_t>(__builtin_clzll(bytes))) / 2;
}

}  // namespace

CallScanner::CallScanner(const Model& model) {
  for (const GlobalRegion& region : model.regions) {
    if (region.paradigm != Paradigm::kMpi) {
      kinds_.push_back(Kind::kOther);
    } else {
      kinds_.push_back(is_uncounted(region.name) ? Kind::kUncounted : Kind::kCall);
    }
  }
}

void CallScanner::begin(const Group& group) {
  regions_ = profile::LocalIds(group.region_map);
  communicators_ = profile::LocalIds(group.communicator_map);
  depth_ = mpi_depth_ = 0;
}

void CallScanner::mix_in(const Event& event, uint64_t who) {
  if (mpi_depth_ == 0) return;
  const uint64_t where = mix(communicators_.global(event.communicator), who);
  content_ += mix(where, rough_size(event.bytes));
}

const Call* CallScanner::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter: {
      ++depth_;
      if (mpi_depth_ != 0) break;
      const uint32_t region = regions_.global(event.region);
      const Kind kind = region < kinds_.size() ? kinds_[region] : Kind::kOther;
      if (kind == Kind::kOther) break;
      mpi_depth_ = depth_;
      content_ = 0;
      call_ = {event.time_ns, event.time_ns, kind == Kind::kCall ? uint64_t{1} : 0, region,
               std::max(event.weight, 1u)};
      break;
    }
    case EventKind::kLeave: {
      if (depth_ == 0) break;
      const bool is_end = depth_-- == mpi_depth_;
      if (!is_end) break;
      mpi_depth_ = 0;
      call_.leave_ns = event.time_ns;
      if (call_.token != 0) call_.token = mix(call_.region, content_) | 1;
      return &call_;
    }
    case EventKind::kSend:
    case EventKind::kSendRequest:
      mix_in(event, static_cast<uint32_t>(event.peer));
      break;
    case EventKind::kReceive:
      mix_in(event, uint64_t{1} << 40);
      break;
    case EventKind::kCollectiveEnd:
      mix_in(event, uint64_t{2} << 40 | static_cast<uint32_t>(event.peer));
      break;
    case EventKind::kCollectiveRequest: {
      Event start = event;
      start.bytes = 0;  // which preparation and start of a persistent one
      mix_in(start, uint64_t{3} << 40);
      break;
    }
    default:
      break;
  }
  return nullptr;
}

}  // namespace aon::writers::steps
