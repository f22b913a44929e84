#include "writers/waits/waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "writers/profile/local_ids.h"
#include "writers/waits/match.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers {
namespace {

constexpr size_t kStoreBytes = 24u << 20;  ///< in memory, of each of four stores
constexpr size_t kMaxLive = 1u << 20;      ///< requests of one location
constexpr uint32_t kNone = 0xffffffffu;

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

/// Calls that waited, in order. Of the waits of one call the longest counts: they are the same
/// time.
class WaitingCalls {
 public:
  explicit WaitingCalls(SortedStore<Wait>::Reader reader) : reader_(std::move(reader)) {}

  /// Nothing behind the last one.
  Result<std::optional<Wait>> next() {
    if (!has_begun_) {
      Status status = look_ahead();
      if (!status) return status.error();
      has_begun_ = true;
    }
    if (!ahead_) return std::optional<Wait>();
    for (;;) {
      const Wait longest = *ahead_;
      Status status = look_ahead();
      if (!status) return status.error();
      if (!ahead_ || ahead_->call() != longest.call()) return std::optional<Wait>(longest);
    }
  }

 private:
  Status look_ahead() {
    Result<const Wait*> next = reader_.next();
    if (!next) return next.error();
    ahead_ = *next != nullptr ? std::optional<Wait>(**next) : std::nullopt;
    return {};
  }

  SortedStore<Wait>::Reader reader_;
  std::optional<Wait> ahead_;
  bool has_begun_ = false;
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
  Result<std::optional<CallWait>> next_call(uint32_t location) override;

 private:
  /// A region that is open. What it completes is kept until it ends.
  struct Frame {
    uint32_t region;  ///< global id
    uint64_t enter_ns;
    size_t first_end;
    size_t first_member;
  };
  struct OpenEnd {
    MessageEnd end;
    bool is_send;
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
  Status sum_up();
  std::optional<uint64_t> count_collective(const Event& event);
  int64_t own_rank(uint32_t communicator);
  void put(const MessageEnd& end, bool is_send) { keep((is_send ? sends_ : receives_)->add(end)); }
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
  std::unique_ptr<SortedStore<MessageEnd>> sends_;
  std::unique_ptr<SortedStore<MessageEnd>> receives_;
  std::unique_ptr<SortedStore<Member>> members_;
  std::unique_ptr<SortedStore<Wait>> waits_;
  std::optional<WaitingCalls> calls_;
  std::optional<Wait> next_call_;
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
  std::vector<OpenEnd> open_ends_;
  std::vector<Member> open_members_;
};

Status Collector::begin(const Model& model) {
  model_ = &model;
  context_ = std::make_unique<JobContext>(model);
  sends_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  receives_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  members_ = std::make_unique<SortedStore<Member>>(folder_, kStoreBytes);
  waits_ = std::make_unique<SortedStore<Wait>>(folder_, kStoreBytes);
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
      std::any_of(ends.begin(), ends.end(), [](const OpenEnd& open) { return !open.is_send; });
  for (auto& [end, is_send] : ends) {
    // Of an exchange only the receive tells what it waited for.
    const bool is_exchange = has_receive && is_send && end.posted_ns == frame.enter_ns;
    end.enter_ns = is_exchange ? 0 : frame.enter_ns;
    end.leave_ns = is_exchange ? 0 : time_ns;
    end.region = frame.region;
    put(end, is_send);
  }
  open_ends_.resize(frame.first_end);
  for (Member& member : std::span(open_members_).subspan(frame.first_member)) {
    member.enter_ns = frame.enter_ns;
    member.leave_ns = time_ns;
    member.region = frame.region;
    keep(members_->add(member));
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
  *end = {pack(communicator, static_cast<uint32_t>(event.tag)),
          is_send ? pack(self, peer) : pack(peer, self),
          0,
          0,
          0,
          location_,
          frames_.empty() ? kNone : frames_.back().region};
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
    put(end, is_send);
  } else {
    open_ends_.push_back({end, is_send});
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
    put(end, true);
  }
}

void Collector::complete_send(const Event& event) {
  const auto found = live_sends_.find(event.request);
  if (found == live_sends_.end()) return;
  if (frames_.empty()) {
    put(found->second, true);
  } else {
    open_ends_.push_back({found->second, true});
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

/// A send whose completion was not seen is a message all the same.
Status Collector::end_location() {
  while (!frames_.empty()) leave(frames_.back().enter_ns);
  for (const auto& [request, end] : live_sends_) put(end, true);
  live_sends_.clear();
  live_receives_.clear();
  return std::exchange(status_, Status());
}

Status Collector::finish(const Outcome&) {
  const WaitSink sink = [&](const Wait& wait) { return waits_->add(wait); };
  Status status = match_messages(sends_.get(), receives_.get(), *context_, &summary_, sink);
  if (!status) return status;
  sends_.reset();
  receives_.reset();
  status = match_collectives(members_.get(), *context_, &summary_, sink);
  if (!status) return status;
  members_.reset();
  return sum_up();
}

Status Collector::sum_up() {
  Result<SortedStore<Wait>::Reader> reader = waits_->read();
  if (!reader) return reader.error();
  WaitingCalls calls(std::move(*reader));
  std::map<std::tuple<uint32_t, uint32_t, WaitKind>, WaitRow> rows;
  for (;;) {
    Result<std::optional<Wait>> call = calls.next();
    if (!call) return call.error();
    if (!*call) break;
    const Wait& wait = **call;
    WaitRow& row = rows.try_emplace({wait.location, wait.region, wait.kind},
                                    WaitRow{wait.location, wait.region, wait.kind})
                       .first->second;
    ++row.count;
    row.wait_ns += wait.wait_ns;
    row.max_ns = std::max(row.max_ns, wait.wait_ns);
    row.uncertain_ns += std::min(wait.wait_ns, wait.clock_error_ns);
  }
  for (const auto& [key, row] : rows) summary_.rows.push_back(row);
  is_finished_ = true;
  return {};
}

Result<std::optional<CallWait>> Collector::next_call(uint32_t location) {
  if (!is_finished_) return std::optional<CallWait>();
  if (!calls_) {
    Result<SortedStore<Wait>::Reader> reader = waits_->read();
    if (!reader) return reader.error();
    calls_.emplace(std::move(*reader));
    next_call_ = Wait{};
  }
  const auto is_wanted = [&](const Wait& wait) {
    return wait.location >= location && wait.wait_ns >= kLeastCallWaitNs;
  };
  while (next_call_ && !is_wanted(*next_call_)) {
    Result<std::optional<Wait>> next = calls_->next();
    if (!next) return next.error();
    next_call_ = *next;
  }
  if (!next_call_ || next_call_->location != location) return std::optional<CallWait>();
  const CallWait call{next_call_->enter_ns, next_call_->leave_ns, next_call_->wait_ns};
  next_call_ = Wait{};  // waits for nothing: not wanted
  return std::optional<CallWait>(call);
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
