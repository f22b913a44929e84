#include "writers/waits/waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "writers/profile/local_ids.h"
#include "writers/profile/mpi_calls.h"
#include "writers/waits/job_context.h"
#include "writers/waits/match.h"
#include "writers/waits/sorted_store.h"
#include "writers/waits/waiting_calls.h"

namespace aon::writers {
namespace {

constexpr size_t kStoreBytes = 24u << 20;  ///< in memory, of each of four stores
constexpr size_t kMaxLive = 1u << 17;      ///< requests of one location
constexpr size_t kMaxInCall = 1u << 19;    ///< messages that one call completes
constexpr uint32_t kNone = 0xffffffffu;

/// What a region does to the order of messages.
enum class Call : uint8_t {
  kOther,          ///< no MPI
  kMpi,            ///< exchanges nothing between processes that is matched here
  kPause,          ///< MPI_Pcontrol
  kExchange,       ///< messages and collectives, and what completes them; these as well:
  kFree,           ///< MPI_Request_free
  kBufferedSend,   ///< never waits for its receiver
  kMatchedProbe,   ///< takes a message out of the order
  kMatchedReceive  ///< and receives it
};

Call call_of(const GlobalRegion& region) {
  if (region.paradigm != Paradigm::kMpi) return Call::kOther;
  if (region.name == "MPI_Pcontrol") return Call::kPause;
  if (region.name == "MPI_Request_free") return Call::kFree;
  if (region.name == "MPI_Bsend") return Call::kBufferedSend;
  if (region.name == "MPI_Mprobe" || region.name == "MPI_Improbe") return Call::kMatchedProbe;
  if (region.name == "MPI_Mrecv" || region.name == "MPI_Imrecv") return Call::kMatchedReceive;
  return profile::is_exchange(region.role) ? Call::kExchange : Call::kMpi;
}

class Collector : public WaitAnalysis {
 public:
  Collector(std::filesystem::path folder, std::function<void()> beat)
      : folder_(std::move(folder)), beat_(std::move(beat)) {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override {
    for (const Event& event : events) {
      add(event);
      last_ns_ = event.time_ns;
    }
    return std::exchange(status_, Status());
  }
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  const WaitSummary* summary() const override { return is_finished_ ? &summary_ : nullptr; }
  Result<std::unique_ptr<CallWaits>> read_calls() override;
  Result<std::optional<CallWait>> next_call(uint32_t location) override;

 private:
  /// A region that is open. What it completes is kept until it ends.
  struct Frame {
    uint32_t region;  ///< global id
    Call call;
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
  void keep_open(const MessageEnd& end, bool is_send);
  void start_send(const Event& event);
  void complete_send(const Event& event);
  void cancel(const Event& event);
  void complete_receive(const Event& event);
  void add_member(const Event& event);
  bool fill_envelope(const Event& event, bool is_send, MessageEnd* end);
  Status sum_up();
  std::optional<uint64_t> count_collective(const Event& event);
  int64_t own_rank(uint32_t communicator);
  void put(const MessageEnd& end, bool is_send) { keep((is_send ? sends_ : receives_)->add(end)); }
  /// The MPI call that runs; null outside of one.
  const Frame* mpi_call() const {
    return frames_.empty() || frames_.back().call == Call::kOther ? nullptr : &frames_.back();
  }
  uint64_t call_start(const Event& event) const {
    const Frame* call = mpi_call();
    return call == nullptr ? event.time_ns : call->enter_ns;
  }
  void post_receive();
  void cut(uint64_t time_ns) { context_->cut(group_->id, time_ns); }
  void lose(const Event& event);
  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  std::filesystem::path folder_;
  std::function<void()> beat_;
  const Model* model_ = nullptr;
  std::vector<Call> region_calls_;  ///< by global region
  std::unique_ptr<JobContext> context_;
  std::unique_ptr<SortedStore<MessageEnd>> sends_;
  std::unique_ptr<SortedStore<MessageEnd>> receives_;
  std::unique_ptr<SortedStore<Member>> members_;
  std::unique_ptr<SortedStore<Wait>> waits_;
  std::unique_ptr<CallWaits> calls_;
  WaitSummary summary_;
  bool is_finished_ = false;
  Status status_;

  const Group* group_ = nullptr;
  uint32_t location_ = 0;
  LocationType type_ = LocationType::kThread;
  uint64_t last_ns_ = 0;          ///< of the event before
  uint64_t taken_out_ns_ = 0;     ///< when the first message not yet received was taken out
  uint32_t taken_out_count_ = 0;  ///< by MPI_Mprobe
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
  context_ = std::make_unique<JobContext>(model, beat_);
  sends_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  receives_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  members_ = std::make_unique<SortedStore<Member>>(folder_, kStoreBytes);
  waits_ = std::make_unique<SortedStore<Wait>>(folder_, kStoreBytes);
  for (const GlobalRegion& region : model.regions) region_calls_.push_back(call_of(region));
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
  type_ = location.type;
  last_ns_ = 0;
  taken_out_count_ = 0;
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
      post_receive();
      add_end(event, false, call_start(event));
      break;
    case EventKind::kSendRequest:
      start_send(event);
      break;
    case EventKind::kSendComplete:
      complete_send(event);
      break;
    case EventKind::kReceiveRequest:
      post_receive();
      if (live_receives_.size() < kMaxLive) {
        live_receives_[event.request] = call_start(event);
      } else {
        cut(call_start(event));
      }
      break;
    case EventKind::kReceiveComplete:
      complete_receive(event);
      break;
    case EventKind::kRequestCancelled:
      cancel(event);
      break;
    case EventKind::kCollectiveEnd:
      add_member(event);
      break;
    case EventKind::kCollectiveRequest:
      count_collective(event);
      break;
    case EventKind::kLostBegin:
      lose(event);
      break;
    default:
      break;
  }
}

void Collector::enter(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  const Call call = region < region_calls_.size() ? region_calls_[region] : Call::kOther;
  if (call == Call::kPause && profile::pauses(event)) cut(event.time_ns);
  // It may have taken a message, or a number of the communicator, or not.
  if (call >= Call::kExchange && (event.flags & kFailed) != 0) cut(event.time_ns);
  frames_.push_back({region, call, event.time_ns, open_ends_.size(), open_members_.size()});
  if (call != Call::kMatchedProbe) return;
  if (taken_out_count_++ == 0) taken_out_ns_ = event.time_ns;
  if (taken_out_count_ > 1) cut(taken_out_ns_);
}

/// A receive is posted. One by MPI_Mrecv was, in truth, at its probe: that is the same place in the
/// order as long as no other receive is in between.
void Collector::post_receive() {
  if (taken_out_count_ == 0) return;
  const Frame* call = mpi_call();
  if (call != nullptr && call->call == Call::kMatchedReceive) {
    --taken_out_count_;
  } else {
    cut(taken_out_ns_);
  }
}

/// Not of samples. A stream that was cut off lost all behind its last event.
void Collector::lose(const Event& event) {
  if (type_ != LocationType::kThread) return;
  cut(event.region == static_cast<uint32_t>(LossReason::kStreamCut) ? last_ns_ : event.time_ns);
}

/// A freed receive still takes a message, and so did one from nobody knows whom; a cancelled one
/// does not.
void Collector::cancel(const Event& event) {
  live_sends_.erase(event.request);
  const auto found = live_receives_.find(event.request);
  if (found == live_receives_.end()) return;
  const Frame* call = mpi_call();
  const bool is_unknown = (event.flags & kCancelled) == 0 && event.peer == kAnyPeer;
  if (call == nullptr || call->call == Call::kFree || is_unknown) cut(found->second);
  live_receives_.erase(found);
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
    const bool can_wait = !is_exchange && frame.call != Call::kBufferedSend;
    end.enter_ns = can_wait ? frame.enter_ns : 0;
    end.leave_ns = can_wait ? time_ns : 0;
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
          kNone};
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
  keep_open(end, is_send);
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
  keep_open(found->second, true);
  live_sends_.erase(found);
}

/// Until its call ends; without one it has not waited.
void Collector::keep_open(const MessageEnd& end, bool is_send) {
  if (mpi_call() != nullptr && open_ends_.size() < kMaxInCall) {
    open_ends_.push_back({end, is_send});
  } else {
    put(end, is_send);
  }
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
  if (!number || mpi_call() == nullptr || is_alone(event)) return;
  const uint32_t communicator = communicators_.global(event.communicator);
  // Of another world with the same name.
  if (own_rank(communicator) < 0) context_->exclude(communicator);
  const bool is_root = event.peer >= 0 && event.peer == own_rank(communicator);
  open_members_.push_back({communicator, location_, *number, 0, 0, kNone, event.operation, is_root,
                           event.bytes != 0 && event.bytes_received != 0,
                           std::max(event.bytes, event.bytes_received)});
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
  // These may have taken a message that we were not told of.
  for (const auto& [request, posted_ns] : live_receives_) cut(posted_ns);
  if (taken_out_count_ != 0) cut(taken_out_ns_);
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
    context_->beat();
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

Result<std::unique_ptr<CallWaits>> Collector::read_calls() {
  if (!is_finished_) return Error{Code::kInvalid, "the waits are not analysed yet"};
  Result<SortedStore<Wait>::Reader> reader = waits_->read();
  if (!reader) return reader.error();
  return std::unique_ptr<CallWaits>(std::make_unique<CallWaitReader>(std::move(*reader)));
}

Result<std::optional<CallWait>> Collector::next_call(uint32_t location) {
  if (!is_finished_) return std::optional<CallWait>();
  if (!calls_) {
    Result<std::unique_ptr<CallWaits>> calls = read_calls();
    if (!calls) return calls.error();
    calls_ = std::move(*calls);
  }
  return calls_->next(location);
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

std::unique_ptr<WaitAnalysis> make_wait_analysis(const std::filesystem::path& folder,
                                                 std::function<void()> beat) {
  return std::make_unique<Collector>(folder, std::move(beat));
}

}  // namespace aon::writers
