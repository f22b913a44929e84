/// Events -> the ends of messages and the members of collectives (match.h), with what nobody can
/// match cut out of the order (waits.h has the rules).
/// Thread: one.   Cost: about 15 ns per event; memory for the requests of one location.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "writers/profile/local_ids.h"
#include "writers/waits/job_context.h"
#include "writers/waits/match.h"
#include "writers/writer.h"

namespace aon::writers {

/// Takes what a Collector finds.
class EndSink {
 public:
  virtual ~EndSink() = default;
  virtual Status add_end(const MessageEnd& end, bool is_send) = 0;
  virtual Status add_member(const Member& member) = 0;
};

class Collector {
 public:
  /// `context` learns of cuts and exclusions. All outlive it.
  Collector(const Model& model, JobContext* context, EndSink* sink);

  void begin_location(const Location& location);
  /// Errors: those of the sink.
  Status add(std::span<const Event> events) {
    for (const Event& event : events) {
      add(event);
      last_ns_ = event.time_ns;
      if (!status_) break;
    }
    return std::exchange(status_, Status());
  }
  Status end_location();
  /// Behind the last location. Those of a group come one after the other.
  Status finish();

  /// Ends whose other one cannot be named.
  uint64_t unmatched_count() const { return unmatched_count_; }

 private:
  static constexpr size_t kMaxLive = 1u << 17;    ///< requests of one location
  static constexpr size_t kMaxInCall = 1u << 19;  ///< messages that one call completes
  static constexpr size_t kMaxCounts = 1u << 20;  ///< functions on objects, of one process

  /// What a region does to the order of messages.
  enum class Call : uint8_t {
    kOther,           ///< no MPI
    kMpi,             ///< exchanges nothing between processes that is matched by its order
    kOfSome,          ///< the same; makes a communicator, who knows with whom
    kOnCommunicator,  ///< the same; has a number among such calls of a communicator,
    kOnWindow,        ///< of a window,
    kOnFile,          ///< or of a file
    kChange,          ///< the same, of a file: one that failed hides no other function's
    kPause,           ///< MPI_Pcontrol
    kExchange,        ///< messages and collectives, and what completes them; these as well:
    kTest,            ///< MPI_Test and its like
    kFree,            ///< MPI_Request_free
    kBufferedSend,    ///< never waits for its receiver
    kMatchedProbe,    ///< takes a message out of the order
    kMatchedReceive,  ///< and receives it
    kStart            ///< of persistent requests
  };

  /// What an MPI_Startall that failed has not started: that of collectives may be on all members.
  enum class Refused : uint8_t { kNo, kUnknown, kCollectives, kOthers };

  /// A region that is open. What it completes is kept until it ends.
  struct Frame {
    uint32_t region;  ///< global id
    Call call;
    uint64_t enter_ns;
    size_t first_end;
    size_t first_member;
    bool is_poll;                  ///< a kTest or one of N calls, and nothing was found so far
    uint32_t completed_count = 0;  ///< of requests
    Refused refused = Refused::kNo;
  };
  struct OpenEnd {
    MessageEnd end;
    bool is_send;
    std::optional<uint64_t> request;  ///< of a receive whose post a location to come may have
  };
  struct OpenMember {
    Member member;
    std::optional<uint64_t> request;  ///< of one whose start a location to come may have
  };
  struct Post {
    uint64_t posted_ns;
    uint32_t location;
  };
  /// Which collective it is, as Member has it. What completes one need not know the last two.
  struct Turn {
    Meeting meeting;
    uint32_t communicator;
    uint32_t preparation;
    uint64_t number;
  };
  struct CallCount {
    uint32_t location;
    uint32_t count;
  };
  struct CollectiveCount {
    uint32_t location;
    uint64_t count;
    uint64_t neighborhood_count;
  };

  bool is_alone_on(uint32_t communicator) const;
  bool is_alone(const Event& event) const {
    return is_alone_on(communicators_.global(event.communicator));
  }
  static bool is_on_object(Call call) {
    return call >= Call::kOnCommunicator && call <= Call::kOnFile;
  }
  static bool completes(const Event& event);
  void add(const Event& event);
  void enter(const Event& event);
  void fail(const Event& event);
  void leave(uint64_t time_ns);
  uint64_t wait_begin(const Frame& frame, uint64_t start_ns) const;
  void add_end(const Event& event, bool is_send, uint64_t posted_ns);
  void keep_open(const MessageEnd& end, bool is_send, std::optional<uint64_t> request = {});
  void start_send(const Event& event);
  void complete_send(const Event& event);
  void cancel(const Event& event);
  void start_receive(const Event& event);
  void complete_receive(const Event& event);
  void receive_of_another(const Event& event);
  void end_before_start(uint64_t request, const Member& ended);
  void keep_until_posted(uint64_t request, const MessageEnd& end);
  void put_posted(MessageEnd end);
  void end_group();
  void start_collective(const Event& event);
  void complete_collective(const Event& event);
  void add_object_event(const Event& event);
  void add_window_event(const Event& event);
  void add_file_event(const Event& event);
  void add_member(const Event& event, std::optional<Turn> turn);
  void start_member(const Event& event, std::optional<Turn> turn);
  void complete_member(const Event& event, std::optional<Turn> turn);
  std::optional<Member> begin_member(const Event& event, std::optional<Turn> turn);
  void keep_member(const Event& event, Member member, std::optional<uint64_t> request = {});
  void put_unseen(const Member& member) { keep(sink_->add_member(member)); }
  bool fill_envelope(const Event& event, bool is_send, MessageEnd* end);
  std::optional<Turn> count_collective(const Event& event);
  std::optional<Turn> count_call(const Turn& turn);
  std::optional<Turn> count_window_call(const Event& event);
  std::optional<Turn> count_file_call(uint32_t local_file);
  std::optional<Turn> turn_on_file(uint32_t local_file) const;
  std::optional<Turn> failed_turn(const Event& event);
  std::optional<Turn> instance_of(const Event& event) const;
  int64_t own_rank(uint32_t communicator);
  /// Of a request of files, apart from all others.
  static constexpr uint64_t kOfFile = uint64_t{1} << 63;
  void put(const MessageEnd& end, bool is_send) { keep(sink_->add_end(end, is_send)); }
  static Call call_of(const GlobalRegion& region);
  /// The MPI call that runs; null outside of one.
  const Frame* mpi_call() const {
    return frames_.empty() || frames_.back().call == Call::kOther ? nullptr : &frames_.back();
  }
  bool is_of_some() const { return mpi_call() != nullptr && mpi_call()->call == Call::kOfSome; }
  uint64_t call_start(const Event& event) const {
    const Frame* call = mpi_call();
    return call == nullptr ? event.time_ns : call->enter_ns;
  }
  void post_receive();
  void cut(Hole hole, uint64_t time_ns) { context_->cut(group_->id, hole, time_ns); }
  void cut_messages(Hole hole, uint64_t time_ns) {
    context_->cut_messages(group_->id, hole, time_ns);
  }
  void lose(const Event& event);
  void keep(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  const Model* model_;
  JobContext* context_;
  EndSink* sink_;
  std::vector<Call> region_calls_;  ///< by global region
  uint64_t unmatched_count_ = 0;
  Status status_;

  const Group* group_ = nullptr;
  uint32_t location_ = 0;
  LocationType type_ = LocationType::kThread;
  uint64_t last_ns_ = 0;          ///< of the event before
  uint64_t call_end_ns_ = 0;      ///< of the last call of MPI that was more than a poll in vain
  uint64_t taken_out_ns_ = 0;     ///< when the first message not yet received was taken out
  uint32_t taken_out_count_ = 0;  ///< by MPI_Mprobe
  profile::LocalIds regions_;
  profile::LocalIds communicators_;
  profile::LocalIds windows_;
  profile::LocalIds files_;
  std::unordered_map<uint32_t, int64_t> own_ranks_;                  ///< by communicator
  std::unordered_map<uint32_t, CollectiveCount> collective_counts_;  ///< the same, of the group
  std::unordered_map<uint64_t, CallCount> call_counts_;              ///< of the group: count_call()
  uint32_t uncounted_ = 0;                                 ///< the same, calls beyond kMaxCounts
  std::unordered_map<uint64_t, MessageEnd> live_sends_;    ///< by request
  std::unordered_map<uint64_t, uint64_t> live_receives_;   ///< when they were posted
  std::unordered_map<uint64_t, Member> live_collectives_;  ///< by request
  std::unordered_map<uint64_t, Post> posts_;        ///< by request, of the group's locations before
  std::unordered_map<uint64_t, MessageEnd> ended_;  ///< the same, whose post was not seen yet; of
                                                    ///< a communicator of one: location kNone
  std::unordered_map<uint64_t, Member> begun_members_;  ///< as posts_ and ended_, of collectives
  std::unordered_map<uint64_t, Member> ended_members_;
  std::vector<Frame> frames_;
  std::vector<OpenEnd> open_ends_;
  std::vector<OpenMember> open_members_;
};

}  // namespace aon::writers
