#include "writers/nccl/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/digits.h"
#include "writers/nccl/operations.h"
#include "writers/waits/store_state.h"
#include "writers/waits/waits.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kMemoryBytes = size_t{8} << 20;
constexpr uint64_t kTransfer = uint64_t{1} << 63;  ///< in Part::key
constexpr uint64_t kNotTold = UINT64_MAX;
constexpr uint64_t kConnects = UINT64_MAX - 1;  ///< a first operation whose launch is not told
constexpr uint32_t kUnknown = profile::LocalIds::kNone;
constexpr size_t kWaitMemoryBytes = size_t{2} << 20;
constexpr uint32_t kNotInArchive = UINT32_MAX;
constexpr double kMostUntimed = 0.1;  ///< share of parts; from there on it is told
constexpr size_t kFewLate = 8;        ///< each is held against the waits of all by itself

/// Of some times, for many limits: of each as much as the limit, summed up.   Cost: that of a sort.
class LimitedSums {
 public:
  explicit LimitedSums(std::vector<uint64_t> times_ns) : times_ns_(std::move(times_ns)) {
    std::sort(times_ns_.begin(), times_ns_.end());
    sums_ns_.reserve(times_ns_.size() + 1);
    for (const uint64_t time_ns : times_ns_) sums_ns_.push_back(sums_ns_.back() + time_ns);
  }
  uint64_t up_to(uint64_t limit_ns) const {
    const auto longer = std::upper_bound(times_ns_.begin(), times_ns_.end(), limit_ns);
    const auto shorter_count = static_cast<size_t>(longer - times_ns_.begin());
    return sums_ns_[shorter_count] + (times_ns_.size() - shorter_count) * limit_ns;
  }

 private:
  std::vector<uint64_t> times_ns_;
  std::vector<uint64_t> sums_ns_ = {0};  ///< of the first ones
};

}  // namespace

LatenessAnalysis::LatenessAnalysis(std::filesystem::path folder)
    : folder_(std::move(folder)),
      store_(folder_, kMemoryBytes),
      sends_(folder_),
      network_(folder_) {}

void LatenessAnalysis::keep_waits() { waits_.emplace(folder_, kWaitMemoryBytes); }

Status LatenessAnalysis::begin(const Model& model) {
  model_ = &model;
  for (uint32_t i = 0; i < model.locations.size(); ++i) {
    const Location& location = model.locations[i];
    if (location.in_archive && is_nccl_timeline(model, location))
      timelines_[{location.group, location.device_stream}] = i;
  }
  return {};
}

Status LatenessAnalysis::begin_location(const Location& location) {
  if (location.group == group_) return {};
  if (Status status = sends_.end_group(); !status) return status;
  group_ = location.group;
  const Group& group = model_->groups[group_];
  communicators_ = profile::LocalIds(group.communicator_map);
  regions_ = profile::LocalIds(group.region_map);
  places_.clear();
  has_steps_ = may_have_steps(group);
  if (group.process == nullptr) return {};
  for (const auto& [local, communicator] : group.process->communicators) {
    if (communicator.definition.kind != CommunicatorKind::kNccl) continue;
    const uint8_t device = communicator.definition.reserved[kNcclDevice];
    const uint32_t ordinal = device == 0 ? kNoDevice : device - 1u;
    const auto timeline = timelines_.find({group_, local});
    places_[local] = {communicator.definition.rank, member_of(group_, ordinal),
                      timeline != timelines_.end() ? timeline->second : kNotInArchive};
  }
  return {};
}

uint32_t LatenessAnalysis::member_of(uint32_t group, uint32_t device) {
  const auto next = static_cast<uint32_t>(summary_.members.size());
  const auto [found, is_new] = member_ids_.try_emplace({group, device}, next);
  if (is_new) summary_.members.push_back({group, device});
  return found->second;
}

Status LatenessAnalysis::events(std::span<const Event> events) {
  for (const Event& event : events) {
    Status status;
    if (event.kind == EventKind::kNcclCall) status = add(event.nccl());
    if (event.kind == EventKind::kNcclProxy && has_steps_) status = sends_.add(event.nccl_proxy());
    if (!status) return status;
  }
  return {};
}

/// Somebody else takes part in it, as far as is known.
bool LatenessAnalysis::has_partners(const NcclOperation& operation) const {
  const uint32_t communicator = communicators_.global(operation.communicator);
  const uint32_t region = regions_.global(operation.region);
  const auto place = places_.find(operation.communicator);
  if (communicator == kUnknown || region == kUnknown || place == places_.end()) return false;
  if (model_->communicators[communicator].rank_count < 2) return false;
  return model_->regions[region].role != RegionRole::kPointToPoint ||
         static_cast<uint32_t>(operation.peer) != place->second.rank;
}

Status LatenessAnalysis::add(const NcclOperation& operation) {
  if ((operation.flags & kNcclInFlight) != 0 || !has_partners(operation)) return {};
  graphs_.add(communicators_.global(operation.communicator),
              places_.at(operation.communicator).rank,
              model_->regions[regions_.global(operation.region)].role, operation.flags);
  if ((operation.flags & kNcclGpuTimed) == 0) {
    if ((operation.flags & kNcclNoWork) == 0) ++summary_.untimed_count;
    return {};
  }
  if ((operation.flags & kNcclMissedChannels) != 0) {
    ++summary_.unmatched_count;
    return {};
  }
  ++summary_.told_count;
  return add_part(operation);
}

/// It has been counted as one without times.
Status LatenessAnalysis::add_kernel_times(const devices::TimedOperation& operation) {
  if (operation.is_told || operation.shared_by != 1) return {};
  const NcclOperation timed{.start_ns = operation.called_ns,
                            .launch_ns = operation.launch_ns,
                            .gpu_begin_ns = operation.start_ns,
                            .gpu_ns = operation.gpu_ns,
                            .bytes = operation.bytes,
                            .sequence = operation.sequence,
                            .call = operation.call,
                            .communicator = operation.communicator,
                            .region = operation.region,
                            .peer = operation.peer,
                            .type = operation.type};
  if (!has_partners(timed) || summary_.untimed_count == 0) return {};
  --summary_.untimed_count;
  return add_part(timed);
}

Status LatenessAnalysis::add_part(const NcclOperation& operation) {
  const uint32_t region = regions_.global(operation.region);
  const Place& place = places_.at(operation.communicator);
  Part part{region,
            operation.sequence,
            operation.gpu_begin_ns,
            operation.gpu_ns,
            kNotTold,
            kNotTold,
            operation.bytes,
            place.location,
            static_cast<uint32_t>(operation.type),
            communicators_.global(operation.communicator),
            region,
            place.rank,
            place.member};
  if (operation.launch_ns != 0 && operation.gpu_begin_ns >= operation.launch_ns)
    part.queued_ns = operation.gpu_begin_ns - operation.launch_ns;
  if (operation.launch_ns != 0 && operation.launch_ns >= operation.start_ns) {
    part.inside_ns = operation.launch_ns - operation.start_ns;
  } else if (operation.launch_ns == 0 && operation.call == 0) {
    part.inside_ns = kConnects;
  }
  if (model_->regions[region].role == RegionRole::kPointToPoint) {
    const auto peer = static_cast<uint32_t>(operation.peer);
    const bool is_send = model_->regions[region].name == "ncclSend";
    const uint64_t source = is_send ? place.rank : peer;
    const uint64_t destination = is_send ? peer : place.rank;
    part.key = kTransfer | (source & 0x7fffffff) << 32 | destination;
    part.place = is_send ? 0 : 1;
  }
  if (has_steps_) {
    Status status = sends_.add_operation(operation.communicator, operation.call, part.part_key(),
                                         operation.gpu_begin_ns);
    if (!status) return status;
  }
  return store_.add(part);
}

Status LatenessAnalysis::finish(const Outcome&) {
  if (!summary_.members.empty()) sort_steps();
  unlike_ = graphs_.unlike();
  if (Status status = sends_.end_group(); !status) return status;
  Result<SendWaitStore::Reader> sends = sends_.read();
  if (!sends) return sends.error();
  Result<SortedStore<Part>::Reader> reader = store_.read();
  if (!reader) return reader.error();
  std::vector<Part> parts;
  for (;;) {
    Result<const Part*> next = reader->next();
    if (!next) return next.error();
    if (!parts.empty() && (*next == nullptr || !(*next)->is_of_one(parts.front()))) {
      const PartKey key = parts.front().part_key();
      Status status = sends->take(key, wanted_count(parts.front()), &operation_sends_);
      if (status) status = match(parts);
      if (!status) return status;
      parts.clear();
    }
    if (*next == nullptr) break;
    ++summary_.timed_count;
    // More than there are members is damage, and kept out of memory.
    if (!parts.empty() && parts.size() > wanted_count(parts.front())) {
      ++summary_.unmatched_count;
    } else {
      parts.push_back(**next);
    }
  }
  summary_.times = times_.take();
  summary_.unmatched_send_count = sends_.left_out_count();
  if (Status status = network_.judge(summary_.times, &summary_.network); !status) return status;
  judge_links();
  std::vector<uint32_t>().swap(steps_in_order_);
  is_done_ = true;
  return {};
}

Status LatenessAnalysis::save(StateOut* out) {
  out->put(std::exchange(summary_.told_count, 0));
  out->put(std::exchange(summary_.untimed_count, 0));
  out->put(std::exchange(summary_.unmatched_count, 0));
  out->put(std::exchange(summary_.members, {}));
  graphs_.save(out);
  if (Status status = save_items(&store_, out); !status) return status;
  if (Status status = sends_.save(out); !status) return status;
  member_ids_.clear();
  store_ = SortedStore<Part>(folder_, kMemoryBytes);
  group_ = UINT32_MAX;
  return {};
}

/// Members have the numbers here that they would have had with their events.
Status LatenessAnalysis::load(StateIn* in) {
  uint64_t told_count = 0, untimed_count = 0, unmatched_count = 0;
  std::vector<LateMember> told;
  if (!in->get(&told_count) || !in->get(&untimed_count) || !in->get(&unmatched_count) ||
      !in->get(&told))
    return in->status();
  summary_.told_count += told_count;
  summary_.untimed_count += untimed_count;
  summary_.unmatched_count += unmatched_count;
  std::vector<uint32_t> members;
  for (const LateMember& member : told) {
    if (!in->check(member.group < model_->groups.size())) return in->status();
    members.push_back(member_of(member.group, member.device));
  }
  if (Status status = graphs_.load(*model_, in); !status) return status;
  return load_parts(in, members);
}

Status LatenessAnalysis::load_parts(StateIn* in, std::span<const uint32_t> members) {
  Status status = load_items<Part>(in, [&](Part part) {
    if (!in->check(part.member < members.size() && part.region < model_->regions.size() &&
                   part.communicator < model_->communicators.size() &&
                   (part.location == kNotInArchive || part.location < model_->locations.size())))
      return in->status();
    part.member = members[part.member];
    return store_.add(part);
  });
  return status ? sends_.load(*model_, in) : status;
}

size_t LatenessAnalysis::wanted_count(const Part& part) const {
  return (part.key & kTransfer) != 0 ? 2 : model_->communicators[part.communicator].rank_count;
}

/// All members are there, each once, and did the same.
bool LatenessAnalysis::is_whole(std::span<const Part> parts) const {
  const Part& first = parts.front();
  if (parts.size() != wanted_count(first)) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].place != i || parts[i].bytes != first.bytes) return false;
  }
  return true;
}

Status LatenessAnalysis::match(std::span<const Part> parts) {
  const Part& first = parts.front();
  if (unlike_.count(first.communicator) != 0 || !is_whole(parts)) {
    summary_.unmatched_count += parts.size();
    return {};
  }
  const bool is_transfer = (first.key & kTransfer) != 0;
  const Part& shortest = *std::min_element(
      parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.gpu_ns < b.gpu_ns; });
  const bool needs_all = model_->regions[first.region].role == RegionRole::kAllToAll;
  Status status;
  if (is_transfer || needs_all) {
    if (is_first_use(first) && is_connecting(parts)) {
      ++summary_.connecting_count;
    } else {
      add_lateness(parts);
      status = add_sends(parts, shortest.gpu_ns);
    }
    if (!times_.add(first.communicator, first.region, first.bytes, shortest.gpu_ns))
      ++summary_.left_out_count;
  }
  if (is_transfer) add_link(parts, shortest.gpu_ns);
  return status;
}

/// Operations of a communicator and key follow one another, in their order.
bool LatenessAnalysis::is_first_use(const Part& part) {
  const std::pair user(part.communicator, part.key);
  if (std::exchange(user_, user) != user) used_sizes_ = {};
  // Each type has kernels of its own.
  uint64_t& used = used_sizes_[std::min<size_t>(part.type, kNcclTypeCount - 1)];
  const uint64_t size = uint64_t{1} << log2_of(part.bytes);
  return (std::exchange(used, used | size) & size) == 0;
}

/// Most of the longest wait is what the last one's host was longer in NCCL than another's.
bool LatenessAnalysis::is_connecting(std::span<const Part> parts) const {
  const auto is_shorter = [](const Part& a, const Part& b) { return a.gpu_ns < b.gpu_ns; };
  const auto [last, first] = std::minmax_element(parts.begin(), parts.end(), is_shorter);
  if (last->inside_ns == kConnects) return true;
  if (last->inside_ns == kNotTold || last->queued_ns == kNotTold) return false;
  const uint64_t wait_ns = first->gpu_ns - last->gpu_ns;
  const uint64_t host_ns = wait_ns - std::min(wait_ns, last->queued_ns);
  uint64_t least_inside_ns = last->inside_ns;
  for (const Part& part : parts) least_inside_ns = std::min(least_inside_ns, part.inside_ns);
  const uint64_t longer_ns = last->inside_ns - least_inside_ns;
  return longer_ns >= kLeastConnectingNs && std::min(host_ns, longer_ns) > wait_ns / 2;
}

void LatenessAnalysis::add_lateness(std::span<const Part> parts) {
  const Part& first = parts.front();
  std::vector<Attendance> attendances;
  for (const Part& part : parts) attendances.push_back({part.member, part.gpu_ns});
  summary_.table.add(first.communicator, first.region, attendances);
  const LateMembers late(attendances);
  std::optional<LimitedSums> waits;
  if (late.count() > kFewLate) {
    std::vector<uint64_t> waits_ns;
    for (size_t i = 0; i < parts.size(); ++i) waits_ns.push_back(late.wait_ns(i));
    waits.emplace(std::move(waits_ns));
  }
  const auto waits_up_to = [&](uint64_t limit_ns) {
    if (waits) return waits->up_to(limit_ns);
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < parts.size(); ++i) sum_ns += std::min(late.wait_ns(i), limit_ns);
    return sum_ns;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    note_wait(parts[i], late.wait_ns(i));
    if (!late.is_late(i)) continue;
    if (late.is_worth_telling()) note_step(parts[i], late.caused_ns(i));
    if (!summary_.table.has_row(first.communicator, first.region, parts[i].member)) continue;
    Causes& causes = summary_.causes[{first.communicator, first.region, parts[i].member}];
    const uint64_t queued_ns = parts[i].queued_ns;
    if (queued_ns == kNotTold) {
      causes.untold_ns += late.caused_ns(i);
      continue;
    }
    const uint64_t gpu_ns = std::min(waits_up_to(queued_ns) / late.count(), late.caused_ns(i));
    causes.gpu_ns += gpu_ns;
    causes.host_ns += late.caused_ns(i) - gpu_ns;
  }
}

void LatenessAnalysis::sort_steps() {
  const StepSummary* steps = steps_ != nullptr ? steps_->summary() : nullptr;
  if (steps == nullptr || steps->rows.empty()) return;
  summary_.step_caused_ns.assign(steps->rows.size(), 0);
  steps_in_order_.resize(steps->rows.size());
  std::iota(steps_in_order_.begin(), steps_in_order_.end(), 0u);
  std::sort(steps_in_order_.begin(), steps_in_order_.end(), [&](uint32_t a, uint32_t b) {
    const StepRow &one = steps->rows[a], &other = steps->rows[b];
    return std::tie(one.group, one.begin_ns) < std::tie(other.group, other.begin_ns);
  });
}

/// The GPU may be steps behind its host: the step is that of the call, where that is known.
void LatenessAnalysis::note_step(const Part& part, uint64_t caused_ns) {
  if (steps_in_order_.empty()) return;
  const std::vector<StepRow>& rows = steps_->summary()->rows;
  const uint32_t group = summary_.members[part.member].group;
  const bool is_called = part.queued_ns != kNotTold && part.inside_ns < kConnects;
  const uint64_t before_ns = is_called ? part.queued_ns + part.inside_ns : 0;
  const uint64_t time_ns = part.begin_ns - std::min(part.begin_ns, before_ns);
  const auto behind =
      std::upper_bound(steps_in_order_.begin(), steps_in_order_.end(), std::pair(group, time_ns),
                       [&](const auto& at, uint32_t row) {
                         return at < std::pair(rows[row].group, rows[row].begin_ns);
                       });
  if (behind == steps_in_order_.begin()) return;
  const uint32_t index = *std::prev(behind);
  const StepRow& row = rows[index];
  const uint64_t duration_ns = row.part_ns[static_cast<size_t>(StepPart::kDuration)];
  if (row.group == group && time_ns - row.begin_ns < duration_ns)
    summary_.step_caused_ns[index] += caused_ns;
}

/// A store without room says so when it is read: the tables do not need it.
void LatenessAnalysis::keep_wait(const Part& part, uint64_t wait_ns) {
  if (!waits_ || wait_ns < kLeastCallWaitNs || part.location == kNotInArchive) return;
  const uint64_t end_ns = part.begin_ns + std::min(part.gpu_ns, UINT64_MAX - part.begin_ns);
  if (end_ns < model_->archive_start_ns) {
    waited_before_ns_[part.location] += wait_ns;
    return;
  }
  static_cast<void>(waits_->add({part.location, part.begin_ns, 0}));
  static_cast<void>(waits_->add({part.location, end_ns, wait_ns}));
}

std::string untimed_text(const LatenessSummary& summary) {
  const uint64_t count = summary.timed_count + summary.untimed_count;
  if (static_cast<double>(summary.untimed_count) < kMostUntimed * static_cast<double>(count) ||
      summary.untimed_count == 0)
    return {};
  const char* remedy =
      summary.told_count == 0 ? "; --nccl-level gpu has NCCL tell them, from 2.27 on" : "";
  if (summary.timed_count == 0)
    return fmt::format(
        "none of {} operations of NCCL has a time of its own on the GPU: late ranks, slow "
        "links and bandwidths are not told{}",
        grouped(count), remedy);
  return fmt::format(
      "{} of {} operations of NCCL have no time of their own on the GPU: late ranks, slow links "
      "and bandwidths are told by the others{}",
      grouped(summary.untimed_count), grouped(count), remedy);
}

std::string member_text(const Model& model, const LateMember& member) {
  const Group& group = model.groups[member.group];
  std::string text = group.rank ? fmt::format("rank {}", *group.rank) : group.name;
  text += fmt::format(" on {}", model.job->nodes[group.node].host);
  const auto& devices =
      group.process != nullptr ? group.process->devices : std::map<uint32_t, spool::Device>();
  uint32_t device = member.device;
  if (device == kNoDevice && devices.size() == 1) device = devices.begin()->first;
  if (device == kNoDevice) return text;
  const auto known = devices.find(device);
  if (known == devices.end() || known->second.address.empty())
    return text + fmt::format(" (GPU {})", device);
  return text + fmt::format(" (GPU {} at {})", device, known->second.address);
}

}  // namespace aon::writers::nccl
