#include "writers/waits/collector.h"

#include <aon/mpi.h>

#include <algorithm>
#include <span>

#include "writers/profile/mpi_calls.h"

namespace aon::writers {
namespace {

constexpr uint32_t kNone = 0xffffffffu;

}  // namespace

Collector::Call Collector::call_of(const GlobalRegion& region) {
  if (region.paradigm != Paradigm::kMpi) return Call::kOther;
  if (region.name == "MPI_Pcontrol") return Call::kPause;
  if (region.name == "MPI_Request_free") return Call::kFree;
  if (region.name == "MPI_Bsend") return Call::kBufferedSend;
  if (region.name == "MPI_Mprobe" || region.name == "MPI_Improbe") return Call::kMatchedProbe;
  if (region.name == "MPI_Mrecv" || region.name == "MPI_Imrecv") return Call::kMatchedReceive;
  if (profile::is_start(region)) return Call::kStart;
  if (profile::is_test(region)) return Call::kTest;
  if (profile::creates_with_others(region.name)) return Call::kOfSome;
  if (region.name == "MPI_Win_set_info") return Call::kOnWindow;
  if (region.name.starts_with("MPI_File_") && profile::changes_object(region.name))
    return Call::kChange;
  if (profile::is_numbered_on_object(region.name)) {
    if (region.name.starts_with("MPI_File_")) return Call::kOnFile;
    return region.name == "MPI_Win_fence" ? Call::kOnWindow : Call::kOnCommunicator;
  }
  if (profile::is_of_communicators(region)) return Call::kOnCommunicator;
  return profile::is_exchange(region.role) ? Call::kExchange : Call::kMpi;
}

Collector::Collector(const Model& model, JobContext* context, EndSink* sink)
    : model_(&model), context_(context), sink_(sink) {
  for (const GlobalRegion& region : model.regions) region_calls_.push_back(call_of(region));
}

void Collector::begin_location(const Location& location) {
  const Group& group = model_->groups[location.group];
  if (group_ != &group) {
    end_group();
    group_ = &group;
    regions_ = profile::LocalIds(group.region_map);
    communicators_ = profile::LocalIds(group.communicator_map);
    windows_ = profile::LocalIds(group.window_map);
    files_ = profile::LocalIds(group.file_map);
    own_ranks_.clear();
    collective_counts_.clear();
    call_counts_.clear();
    uncounted_ = 0;
  }
  location_ = static_cast<uint32_t>(&location - model_->locations.data());
  type_ = location.type;
  last_ns_ = 0;
  call_end_ns_ = 0;
  taken_out_count_ = 0;
  frames_.clear();
}

/// Whether there is nobody to wait for.
bool Collector::is_alone_on(uint32_t communicator) const {
  return communicator < model_->communicators.size() &&
         model_->communicators[communicator].kind == CommunicatorKind::kSelf;
}

/// Of requests.
bool Collector::completes(const Event& event) {
  switch (event.kind) {
    case EventKind::kReceive:
      return (event.flags & kNonblocking) != 0;
    case EventKind::kSendComplete:
    case EventKind::kReceiveComplete:
    case EventKind::kRequestCancelled:
    case EventKind::kCollectiveComplete:
    case EventKind::kRmaRequestComplete:
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      return true;
    default:
      return false;
  }
}

void Collector::add(const Event& event) {
  if (!frames_.empty() && completes(event)) {
    frames_.back().is_poll = false;
    ++frames_.back().completed_count;
  }
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
      if ((event.flags & kNonblocking) != 0) {
        receive_of_another(event);
        break;
      }
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
      start_receive(event);
      break;
    case EventKind::kReceiveComplete:
      complete_receive(event);
      break;
    case EventKind::kRequestCancelled:
      cancel(event);
      break;
    case EventKind::kCollectiveEnd:
      add_member(event, count_collective(event));
      break;
    case EventKind::kCollectiveRequest:
      start_collective(event);
      break;
    case EventKind::kCollectiveComplete:
      complete_collective(event);
      break;
    case EventKind::kLostBegin:
      lose(event);
      break;
    default:
      add_object_event(event);
      break;
  }
}

void Collector::enter(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  const Call call = region < region_calls_.size() ? region_calls_[region] : Call::kOther;
  if (call == Call::kPause && profile::pauses(event)) cut(Hole::kPause, event.time_ns);
  const bool is_poll = call == Call::kTest || event.weight > 1;
  frames_.push_back(
      {region, call, event.time_ns, open_ends_.size(), open_members_.size(), is_poll});
  if ((event.flags & kFailed) != 0) fail(event);
  const bool has_taken = call == Call::kMatchedProbe && (event.flags & kIncoming) != 0;
  if (!has_taken) return;
  if (taken_out_count_++ == 0) taken_out_ns_ = event.time_ns;
  if (taken_out_count_ > 1) cut_messages(Hole::kProbe, taken_out_ns_);
}

/// It may have taken a message, or a number of the communicator, window or file, or not.
void Collector::fail(const Event& event) {
  const Frame& frame = frames_.back();
  if (const std::optional<Turn> turn = failed_turn(event)) {
    context_->fail({turn->communicator, turn->meeting, turn->preparation, group_->id, turn->number,
                    event.time_ns});
  } else if (frame.call == Call::kStart) {
    frames_.back().refused = Refused::kUnknown;
  } else if (frame.region < model_->regions.size() &&
             profile::changes_object(model_->regions[frame.region].name)) {
    context_->cut_function(group_->id, frame.region, event.time_ns);
  } else if (is_on_object(frame.call)) {
    context_->cut_objects(group_->id, event.time_ns);
  } else if (frame.call >= Call::kExchange) {
    cut(Hole::kFailure, event.time_ns);
  }
}

/// Of a collective that failed; nothing where nobody can say which it would have been.
std::optional<Collector::Turn> Collector::failed_turn(const Event& event) {
  const Call call = frames_.back().call;
  if (event.communicator == 0) return std::nullopt;
  std::optional<Turn> turn;
  if (call == Call::kExchange || call == Call::kOnCommunicator) turn = count_collective(event);
  if (call == Call::kStart) turn = instance_of(event);
  if (call == Call::kOnWindow) turn = count_window_call(event);
  if (call == Call::kOnFile || call == Call::kChange) turn = count_file_call(event.communicator);
  const bool is_known = turn && turn->communicator < model_->communicators.size();
  return is_known && own_rank(turn->communicator) >= 0 ? turn : std::nullopt;
}

/// A receive is posted. One by MPI_Mrecv was, in truth, at its probe: that is the same place in the
/// order as long as no other receive is in between.
void Collector::post_receive() {
  if (taken_out_count_ == 0) return;
  const Frame* call = mpi_call();
  if (call != nullptr && call->call == Call::kMatchedReceive) {
    --taken_out_count_;
  } else {
    cut_messages(Hole::kProbe, taken_out_ns_);
  }
}

/// Not of samples. A stream that was cut off lost all behind its last event.
void Collector::lose(const Event& event) {
  if (type_ != LocationType::kThread) return;
  const bool is_cut_off = event.region == static_cast<uint32_t>(LossReason::kStreamCut);
  cut(Hole::kLoss, is_cut_off ? last_ns_ : event.time_ns);
}

/// A freed receive still takes a message, and so did one from nobody knows whom; a cancelled one
/// does not. Of a collective that failed its start is known.
void Collector::cancel(const Event& event) {
  Frame* start =
      !frames_.empty() && frames_.back().refused != Refused::kNo ? &frames_.back() : nullptr;
  const auto own = live_collectives_.extract(event.request);
  if (start != nullptr && start->refused != Refused::kOthers)
    start->refused = own ? Refused::kCollectives : Refused::kOthers;
  live_sends_.erase(event.request);
  if (own && start != nullptr) {
    const Member& member = own.mapped();
    context_->fail({member.communicator, member.meeting, member.preparation, group_->id,
                    member.number, event.time_ns});
  } else if (own) {
    put_unseen(own.mapped());
  }
  const auto found = live_receives_.find(event.request);
  if (found == live_receives_.end()) return;
  const Frame* call = mpi_call();
  const bool is_unknown = (event.flags & kCancelled) == 0 && event.peer == kAnyPeer;
  if (call == nullptr || call->call == Call::kFree || is_unknown)
    cut_messages((event.flags & kFailed) != 0 ? Hole::kFailure : Hole::kReceive, found->second);
  live_receives_.erase(found);
}

void Collector::leave(uint64_t time_ns) {
  if (frames_.empty()) return;
  const Frame frame = frames_.back();
  frames_.pop_back();
  if (frame.refused == Refused::kUnknown || frame.refused == Refused::kOthers)
    cut(Hole::kFailure, frame.enter_ns);
  for (auto& [end, is_send, request] : std::span(open_ends_).subspan(frame.first_end)) {
    const bool can_wait = frame.call != Call::kBufferedSend;
    end.enter_ns = can_wait ? wait_begin(frame, request ? 0 : end.posted_ns) : 0;
    end.leave_ns = can_wait ? time_ns : 0;
    end.region = frame.region;
    if (request) {
      keep_until_posted(*request, end);
    } else {
      put(end, is_send);
    }
  }
  open_ends_.resize(frame.first_end);
  const std::span completed = std::span(open_members_).subspan(frame.first_member);
  for (auto& [member, request] : completed) {
    member.enter_ns = wait_begin(frame, request ? 0 : member.start_ns);
    member.leave_ns = std::max(time_ns, request ? 0 : member.start_ns);
    static_assert(kMaxInCall <= kMostCompleted);
    member.completed_count = completed.size();
    member.is_alone = frame.completed_count <= 1;
    member.region = frame.region;
    if (request) {
      end_before_start(*request, member);
    } else {
      keep(sink_->add_member(member));
    }
  }
  open_members_.resize(frame.first_member);
  if (frame.call != Call::kOther && !frame.is_poll) call_end_ns_ = time_ns;
}

/// Since when the call that `frame` was may have waited for what was started at `start_ns`.
uint64_t Collector::wait_begin(const Frame& frame, uint64_t start_ns) const {
  return frame.call == Call::kTest ? std::max(call_end_ns_, start_ns) : frame.enter_ns;
}

/// False where the other end cannot be named.
bool Collector::fill_envelope(const Event& event, bool is_send, MessageEnd* end) {
  const uint32_t communicator = communicators_.global(event.communicator);
  if (communicator >= model_->communicators.size()) return false;
  const int64_t own = own_rank(communicator);
  if (own < 0 || event.peer < 0) return false;
  const auto peer = static_cast<uint32_t>(event.peer);
  const auto self = static_cast<uint32_t>(own);
  const bool is_in_parts = (event.flags & kPartitioned) != 0;
  *end = {pack(communicator, static_cast<uint32_t>(event.tag)),
          (is_send ? pack(self, peer) : pack(peer, self)) | (is_in_parts ? kInParts : 0),
          0,
          0,
          0,
          location_,
          kNone,
          location_,
          is_in_parts ? static_cast<uint32_t>(event.bytes_received) : 0};
  return true;
}

void Collector::add_end(const Event& event, bool is_send, uint64_t posted_ns) {
  MessageEnd end;
  if (is_alone(event)) return;
  if (!fill_envelope(event, is_send, &end)) {
    ++unmatched_count_;
    return;
  }
  end.posted_ns = posted_ns;
  keep_open(end, is_send);
}

void Collector::start_send(const Event& event) {
  MessageEnd end;
  if (is_alone(event)) return;
  if (!fill_envelope(event, true, &end)) {
    ++unmatched_count_;
    return;
  }
  end.posted_ns = call_start(event);
  if (live_sends_.size() < kMaxLive) {
    live_sends_[event.request] = end;
  } else {
    put(end, true);
  }
}

/// One that failed, or was cancelled and freed, may be no message.
void Collector::complete_send(const Event& event) {
  const auto found = live_sends_.find(event.request);
  if (found == live_sends_.end()) return;
  if ((event.flags & kFailed) != 0) cut_messages(Hole::kFailure, found->second.posted_ns);
  keep_open(found->second, true);
  live_sends_.erase(found);
}

/// Until its call ends; without one it has not waited.
void Collector::keep_open(const MessageEnd& end, bool is_send, std::optional<uint64_t> request) {
  if (mpi_call() != nullptr && open_ends_.size() < kMaxInCall) {
    open_ends_.push_back({end, is_send, request});
  } else if (request) {
    keep_until_posted(*request, end);
  } else {
    put(end, is_send);
  }
}

void Collector::start_receive(const Event& event) {
  post_receive();
  const uint64_t posted_ns = call_start(event);
  if (const auto ended = ended_.find(event.request); ended != ended_.end()) {
    MessageEnd end = ended->second;
    ended_.erase(ended);
    if (end.location == kNone) return;  // alone
    end.posted_ns = posted_ns;
    end.poster = location_;
    put_posted(end);
  } else if (live_receives_.size() < kMaxLive) {
    live_receives_[event.request] = posted_ns;
  } else {
    cut_messages(Hole::kReceive, posted_ns);
  }
}

/// A receive that another thread has posted: its location was read before, or is to come.
void Collector::receive_of_another(const Event& event) {
  MessageEnd end{};
  if (is_alone(event)) {
    end.location = kNone;
    if (posts_.erase(event.request) == 0) keep_until_posted(event.request, end);
    return;
  }
  if (!fill_envelope(event, false, &end)) {
    ++unmatched_count_;
    return;
  }
  end.posted_ns = call_start(event);
  const auto post = posts_.find(event.request);
  if (post == posts_.end()) {
    keep_open(end, false, event.request);
    return;
  }
  end.posted_ns = post->second.posted_ns;
  end.poster = post->second.location;
  posts_.erase(post);
  keep_open(end, false);
}

void Collector::keep_until_posted(uint64_t request, const MessageEnd& end) {
  if (ended_.size() < kMaxLive) {
    ended_[request] = end;
  } else if (end.location != kNone) {
    put_posted(end);
  }
}

/// Nobody waits for what is not posted yet, as a poll would seem to.
void Collector::put_posted(MessageEnd end) {
  if (end.leave_ns != 0) end.enter_ns = std::max(end.enter_ns, end.posted_ns);
  put(end, false);
}

/// Receives that no location has completed may have taken a message that we were not told of; of
/// such collectives nobody knows how long they were waited for.
void Collector::end_group() {
  for (const auto& [request, post] : posts_) cut_messages(Hole::kReceive, post.posted_ns);
  for (const auto& [request, end] : ended_) {
    if (end.location != kNone) put_posted(end);
  }
  for (const auto& [request, member] : begun_members_) put_unseen(member);
  posts_.clear();
  ended_.clear();
  begun_members_.clear();
  ended_members_.clear();
}

Status Collector::finish() {
  end_group();
  return std::exchange(status_, Status());
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

int64_t Collector::own_rank(uint32_t communicator) {
  const auto [known, is_new] = own_ranks_.try_emplace(communicator, -1);
  if (!is_new) return known->second;
  const std::vector<int64_t>& members = model_->communicators[communicator].members;
  const uint32_t id = group_->id;  // in the world, and what is like it, the place as well
  if (id < members.size() && members[id] == int64_t{id}) return known->second = int64_t{id};
  const auto found = std::find(members.begin(), members.end(), int64_t{id});
  if (found != members.end()) known->second = found - members.begin();
  return known->second;
}

/// A send whose completion was not seen is a message all the same; another location may have
/// completed the rest.
Status Collector::end_location() {
  while (!frames_.empty()) leave(frames_.back().enter_ns);
  for (const auto& [request, end] : live_sends_) put(end, true);
  for (const auto& [request, posted_ns] : live_receives_) {
    if (posts_.size() < kMaxLive) {
      posts_[request] = {posted_ns, location_};
    } else {
      cut_messages(Hole::kReceive, posted_ns);
    }
  }
  if (taken_out_count_ != 0) cut_messages(Hole::kProbe, taken_out_ns_);
  live_sends_.clear();
  live_receives_.clear();
  for (const auto& [request, member] : live_collectives_) {
    if (begun_members_.size() < kMaxLive) {
      begun_members_[request] = member;
    } else {
      put_unseen(member);
    }
  }
  live_collectives_.clear();
  return std::exchange(status_, Status());
}

}  // namespace aon::writers
