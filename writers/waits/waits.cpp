#include "writers/waits/waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "writers/profile/local_ids.h"
#include "writers/waits/bucket_store.h"
#include "writers/waits/match.h"

namespace aon::writers {
namespace {

constexpr size_t kBuckets = 256;
constexpr uint64_t kStoreBytes = 32u << 20;  ///< in memory, of each of the two large stores
constexpr uint64_t kCallStoreBytes = 8u << 20;
constexpr size_t kMaxLive = 1u << 20;  ///< requests of one location
constexpr uint32_t kNone = 0xffffffffu;
constexpr uint32_t kLocationsPerBucket = 4;

size_t bucket_of(uint64_t a, uint64_t b) {
  const uint64_t mixed = (a * 0x9e3779b97f4a7c15ull) ^ (b * 0xc2b2ae3d27d4eb4full);
  return static_cast<size_t>((mixed ^ (mixed >> 29)) * 0x9e3779b97f4a7c15ull >> 56) % kBuckets;
}

/// What the locations of the job have in common.
class JobContext : public WaitContext {
 public:
  explicit JobContext(const Model& model)
      : model_(model),
        cut_ns_(model.groups.size(), UINT64_MAX),
        is_ambiguous_(model.communicators.size(), false) {}

  void cut(uint32_t group, uint64_t time_ns) { cut_ns_[group] = std::min(cut_ns_[group], time_ns); }
  void exclude(uint32_t communicator) { is_ambiguous_[communicator] = true; }

  uint64_t cut_ns(uint32_t location) const override {
    return cut_ns_[model_.locations[location].group];
  }
  uint64_t clock_error_ns(uint32_t a, uint32_t b) const override {
    const uint32_t node_a = node_of(a);
    const uint32_t node_b = node_of(b);
    if (node_a == node_b) return 0;
    const std::vector<uint64_t>& errors = model_.clock_error_ns;
    if (node_a >= errors.size() || node_b >= errors.size()) return 0;
    return errors[node_a] + errors[node_b];
  }
  size_t member_count(uint32_t communicator) const override {
    const GlobalCommunicator& c = model_.communicators[communicator];
    // The members of an inter-communicator are two groups, and a root is in one of them.
    const bool is_known = c.kind != CommunicatorKind::kInter && !is_ambiguous_[communicator];
    return is_known ? c.members.size() : 0;
  }

 private:
  uint32_t node_of(uint32_t location) const {
    return model_.groups[model_.locations[location].group].node;
  }

  const Model& model_;
  std::vector<uint64_t> cut_ns_;  ///< by group
  std::vector<bool> is_ambiguous_;
};

/// Locations that come one after the other share a bucket.
size_t call_bucket(uint32_t location) { return location / kLocationsPerBucket % kBuckets; }

/// Sums up waits; those of calls that completed several requests are brought together first.
class WaitSums {
 public:
  WaitSums(const std::filesystem::path& folder, BucketStore<CallWait>* calls)
      : shared_(folder, kBuckets, kCallStoreBytes), calls_(calls) {}

  Status add(const Wait& wait) {
    if (wait.shares_call) return shared_.add(bucket_of(wait.location, wait.enter_ns), wait);
    return sum(wait);
  }

  Status finish(std::vector<WaitRow>* rows) {
    for (size_t i = 0; i < shared_.bucket_count(); ++i) {
      Result<std::vector<Wait>> waits = shared_.take(i);
      if (!waits) return waits.error();
      Status status = sum_longest(&*waits);
      if (!status) return status;
    }
    for (const auto& [key, row] : rows_) rows->push_back(row);
    return {};
  }

 private:
  static auto call_of(const Wait& wait) {
    return std::tuple(wait.location, wait.enter_ns, wait.region);
  }

  /// Of the waits of one call the longest counts: they are the same time.
  Status sum_longest(std::vector<Wait>* waits) {
    std::sort(waits->begin(), waits->end(), [](const Wait& a, const Wait& b) {
      return std::tuple(call_of(a), a.wait_ns, b.kind) < std::tuple(call_of(b), b.wait_ns, a.kind);
    });
    for (size_t i = 0; i < waits->size(); ++i) {
      const bool is_longest =
          i + 1 == waits->size() || call_of((*waits)[i]) != call_of((*waits)[i + 1]);
      if (!is_longest) continue;
      Status status = sum((*waits)[i]);
      if (!status) return status;
    }
    return {};
  }

  Status sum(const Wait& wait) {
    const WaitRow empty{wait.location, wait.region, wait.kind};
    WaitRow& row = rows_.try_emplace({wait.location, wait.region, wait.kind}, empty).first->second;
    ++row.count;
    row.wait_ns += wait.wait_ns;
    row.max_ns = std::max(row.max_ns, wait.wait_ns);
    row.uncertain_ns += std::min(wait.wait_ns, wait.clock_error_ns);
    if (wait.wait_ns < kLeastCallWaitNs) return {};
    return calls_->add(call_bucket(wait.location),
                       {wait.location, wait.enter_ns, wait.leave_ns, wait.wait_ns});
  }

  BucketStore<Wait> shared_;
  BucketStore<CallWait>* calls_;
  std::map<std::tuple<uint32_t, uint32_t, WaitKind>, WaitRow> rows_;
};

class Collector : public WaitAnalysis {
 public:
  explicit Collector(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override {
    for (const Event& event : events) add(event);
    return std::exchange(status_, Status());
  }
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  const WaitSummary* summary() const override { return is_finished_ ? &summary_ : nullptr; }
  Result<std::span<const CallWait>> calls(uint32_t location) override;

 private:
  /// A region that is open. What it completes is kept until it ends.
  struct Frame {
    uint32_t region;  ///< global id
    uint64_t enter_ns;
    size_t first_end;
    size_t first_member;
  };
  struct CollectiveCount {
    uint32_t location;
    uint64_t count;
  };

  bool is_alone(const Event& event) const;
  void add(const Event& event);
  void enter(const Event& event);
  void leave(uint64_t time_ns);
  void add_end(const Event& event, bool is_send, uint64_t posted_ns);
  void start_send(const Event& event);
  void complete_send(const Event& event);
  void complete_receive(const Event& event);
  void add_member(const Event& event);
  bool fill_envelope(const Event& event, bool is_send, MessageEnd* end);
  std::optional<uint64_t> count_collective(const Event& event);
  int64_t own_rank(uint32_t communicator);
  void put(const MessageEnd& end);
  uint64_t call_start(const Event& event) const {
    return frames_.empty() ? event.time_ns : frames_.back().enter_ns;
  }
  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  std::filesystem::path folder_;
  const Model* model_ = nullptr;
  uint32_t pause_region_ = kNone;  ///< of MPI_Pcontrol
  std::unique_ptr<JobContext> context_;
  std::unique_ptr<BucketStore<MessageEnd>> ends_;
  std::unique_ptr<BucketStore<Member>> members_;
  std::unique_ptr<BucketStore<CallWait>> calls_;
  std::vector<CallWait> bucket_calls_;  ///< of bucket_
  size_t bucket_ = kBuckets;
  WaitSummary summary_;
  bool is_finished_ = false;
  Status status_;

  const Group* group_ = nullptr;
  uint32_t location_ = 0;
  profile::LocalIds regions_;
  profile::LocalIds communicators_;
  std::unordered_map<uint32_t, int64_t> own_ranks_;                  ///< by communicator
  std::unordered_map<uint32_t, CollectiveCount> collective_counts_;  ///< the same, of the group
  std::unordered_map<uint64_t, MessageEnd> live_sends_;              ///< by request
  std::unordered_map<uint64_t, uint64_t> live_receives_;             ///< when they were posted
  std::vector<Frame> frames_;
  std::vector<MessageEnd> open_ends_;
  std::vector<Member> open_members_;
};

Status Collector::begin(const Model& model) {
  model_ = &model;
  context_ = std::make_unique<JobContext>(model);
  ends_ = std::make_unique<BucketStore<MessageEnd>>(folder_, kBuckets, kStoreBytes);
  members_ = std::make_unique<BucketStore<Member>>(folder_, kBuckets, kStoreBytes);
  calls_ = std::make_unique<BucketStore<CallWait>>(folder_, kBuckets, kCallStoreBytes);
  for (size_t i = 0; i < model.regions.size(); ++i) {
    if (model.regions[i].name == "MPI_Pcontrol") pause_region_ = static_cast<uint32_t>(i);
  }
  return {};
}

Status Collector::begin_location(const Location& location) {
  const Group& group = model_->groups[location.group];
  if (group_ != &group) {
    group_ = &group;
    regions_ = profile::LocalIds(group.region_map);
    communicators_ = profile::LocalIds(group.communicator_map);
    own_ranks_.clear();
    collective_counts_.clear();
  }
  location_ = static_cast<uint32_t>(&location - model_->locations.data());
  frames_.clear();
  return {};
}

/// Whether the event is of a communicator without anybody to wait for.
bool Collector::is_alone(const Event& event) const {
  const uint32_t communicator = communicators_.global(event.communicator);
  return communicator < model_->communicators.size() &&
         model_->communicators[communicator].kind == CommunicatorKind::kSelf;
}

void Collector::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
      enter(event);
      break;
    case EventKind::kLeave:
      leave(event.time_ns);
      break;
    case EventKind::kSend:
      add_end(event, true, call_start(event));
      break;
    case EventKind::kReceive:
      add_end(event, false, call_start(event));
      break;
    case EventKind::kSendRequest:
      start_send(event);
      break;
    case EventKind::kSendComplete:
      complete_send(event);
      break;
    case EventKind::kReceiveRequest:
      if (live_receives_.size() < kMaxLive) live_receives_[event.request] = call_start(event);
      break;
    case EventKind::kReceiveComplete:
      complete_receive(event);
      break;
    case EventKind::kRequestCancelled:
      live_sends_.erase(event.request);
      live_receives_.erase(event.request);
      break;
    case EventKind::kCollectiveEnd:
      add_member(event);
      break;
    case EventKind::kCollectiveRequest:
      count_collective(event);
      break;
    case EventKind::kLostBegin:
      context_->cut(group_->id, event.time_ns);
      break;
    default:
      break;
  }
}

void Collector::enter(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  if (region == pause_region_) context_->cut(group_->id, event.time_ns);
  frames_.push_back({region, event.time_ns, open_ends_.size(), open_members_.size()});
}

void Collector::leave(uint64_t time_ns) {
  if (frames_.empty()) return;
  const Frame frame = frames_.back();
  frames_.pop_back();
  const auto ends = std::span(open_ends_).subspan(frame.first_end);
  const bool has_receive =
      std::any_of(ends.begin(), ends.end(), [](const MessageEnd& e) { return !e.is_send; });
  for (MessageEnd& end : ends) {
    // Of an exchange only the receive tells what it waited for.
    const bool is_exchange = has_receive && end.is_send && end.posted_ns == frame.enter_ns;
    end.enter_ns = is_exchange ? 0 : frame.enter_ns;
    end.leave_ns = is_exchange ? 0 : time_ns;
    end.region = frame.region;
    end.shares_call = ends.size() > 1;
    put(end);
  }
  open_ends_.resize(frame.first_end);
  for (Member& member : std::span(open_members_).subspan(frame.first_member)) {
    member.enter_ns = frame.enter_ns;
    member.leave_ns = time_ns;
    member.region = frame.region;
    keep(members_->add(bucket_of(member.communicator, member.number), member));
  }
  open_members_.resize(frame.first_member);
}

/// False where the other end cannot be named.
bool Collector::fill_envelope(const Event& event, bool is_send, MessageEnd* end) {
  const uint32_t communicator = communicators_.global(event.communicator);
  if (communicator >= model_->communicators.size()) return false;
  const int64_t own = own_rank(communicator);
  if (own < 0 || event.peer < 0) return false;
  const auto peer = static_cast<uint32_t>(event.peer);
  const auto self = static_cast<uint32_t>(own);
  *end = {communicator,
          is_send ? self : peer,
          is_send ? peer : self,
          event.tag,
          0,
          0,
          0,
          location_,
          frames_.empty() ? kNone : frames_.back().region,
          is_send,
          false};
  return true;
}

void Collector::add_end(const Event& event, bool is_send, uint64_t posted_ns) {
  MessageEnd end;
  if (is_alone(event)) return;
  if (!fill_envelope(event, is_send, &end)) {
    ++summary_.unmatched_count;
    return;
  }
  end.posted_ns = posted_ns;
  if (frames_.empty()) {
    put(end);
  } else {
    open_ends_.push_back(end);
  }
}

void Collector::start_send(const Event& event) {
  MessageEnd end;
  if (is_alone(event)) return;
  if (!fill_envelope(event, true, &end)) {
    ++summary_.unmatched_count;
    return;
  }
  end.posted_ns = call_start(event);
  if (live_sends_.size() < kMaxLive) {
    live_sends_[event.request] = end;
  } else {
    put(end);
  }
}

void Collector::complete_send(const Event& event) {
  const auto found = live_sends_.find(event.request);
  if (found == live_sends_.end()) return;
  if (frames_.empty()) {
    put(found->second);
  } else {
    open_ends_.push_back(found->second);
  }
  live_sends_.erase(found);
}

void Collector::complete_receive(const Event& event) {
  uint64_t posted_ns = call_start(event);
  const auto found = live_receives_.find(event.request);
  if (found != live_receives_.end()) {
    posted_ns = found->second;
    live_receives_.erase(found);
  }
  add_end(event, false, posted_ns);
}

void Collector::add_member(const Event& event) {
  const std::optional<uint64_t> number = count_collective(event);
  if (!number || frames_.empty() || is_alone(event)) return;
  const uint32_t communicator = communicators_.global(event.communicator);
  const bool is_root = event.peer >= 0 && event.peer == own_rank(communicator);
  open_members_.push_back(
      {communicator, location_, *number, 0, 0, kNone, event.operation, is_root});
}

/// The number of a collective on its communicator. Creating and freeing communicators has none:
/// not every such call is one of all members.
std::optional<uint64_t> Collector::count_collective(const Event& event) {
  const uint32_t communicator = communicators_.global(event.communicator);
  if (communicator >= model_->communicators.size()) return std::nullopt;
  if (event.operation >= CollectiveOperation::kCreateHandle) return std::nullopt;
  CollectiveCount& own =
      collective_counts_.try_emplace(communicator, CollectiveCount{location_, 0}).first->second;
  if (own.location != location_) context_->exclude(communicator);
  return own.count++;
}

int64_t Collector::own_rank(uint32_t communicator) {
  const auto [known, is_new] = own_ranks_.try_emplace(communicator, -1);
  if (!is_new) return known->second;
  const std::vector<int64_t>& members = model_->communicators[communicator].members;
  const auto found = std::find(members.begin(), members.end(), int64_t{group_->id});
  if (found != members.end()) known->second = found - members.begin();
  return known->second;
}

void Collector::put(const MessageEnd& end) {
  const uint64_t pair = uint64_t{end.source} << 32 | end.destination;
  keep(ends_->add(
      bucket_of(uint64_t{end.communicator} << 32 | static_cast<uint32_t>(end.tag), pair), end));
}

/// A send whose completion was not seen is a message all the same.
Status Collector::end_location() {
  while (!frames_.empty()) leave(frames_.back().enter_ns);
  for (const auto& [request, end] : live_sends_) put(end);
  live_sends_.clear();
  live_receives_.clear();
  return std::exchange(status_, Status());
}

Status Collector::finish(const Outcome&) {
  WaitSums sums(folder_, calls_.get());
  const WaitSink sink = [&](const Wait& wait) { return sums.add(wait); };
  for (size_t i = 0; i < kBuckets; ++i) {
    Result<std::vector<MessageEnd>> ends = ends_->take(i);
    if (!ends) return ends.error();
    Status status = match_messages(*ends, *context_, &summary_, sink);
    if (!status) return status;
    Result<std::vector<Member>> members = members_->take(i);
    if (!members) return members.error();
    status = match_collectives(*members, *context_, &summary_, sink);
    if (!status) return status;
  }
  Status status = sums.finish(&summary_.rows);
  is_finished_ = status.has_value();
  return status;
}

Result<std::span<const CallWait>> Collector::calls(uint32_t location) {
  if (!is_finished_) return std::span<const CallWait>();
  const auto key = [](const CallWait& call) { return std::tuple(call.location, call.enter_ns); };
  if (bucket_ != call_bucket(location)) {
    bucket_ = call_bucket(location);
    Result<std::vector<CallWait>> calls = calls_->read(bucket_);
    if (!calls) return calls.error();
    bucket_calls_ = std::move(*calls);
    std::sort(bucket_calls_.begin(), bucket_calls_.end(),
              [&](const CallWait& a, const CallWait& b) { return key(a) < key(b); });
  }
  const auto before = [](const CallWait& a, uint32_t b) { return a.location < b; };
  const auto begin = std::lower_bound(bucket_calls_.begin(), bucket_calls_.end(), location, before);
  const auto end = std::lower_bound(begin, bucket_calls_.end(), location + 1, before);
  return std::span<const CallWait>(begin, end);
}

}  // namespace

const char* wait_kind_name(WaitKind kind) {
  switch (kind) {
    case WaitKind::kLateSender:
      return "late sender";
    case WaitKind::kLateReceiver:
      return "late receiver";
    case WaitKind::kBarrier:
      return "wait at barrier";
    case WaitKind::kNxN:
      return "wait at N x N";
    case WaitKind::kLateBroadcast:
      return "late broadcast";
    case WaitKind::kEarlyReduce:
      return "early reduce";
  }
  return "unknown";
}

std::unique_ptr<WaitAnalysis> make_wait_analysis(const std::filesystem::path& folder) {
  return std::make_unique<Collector>(folder);
}

}  // namespace aon::writers
