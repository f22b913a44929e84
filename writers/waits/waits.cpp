#include "writers/waits/waits.h"

#include <optional>
#include <utility>

#include "writers/waits/collector.h"
#include "writers/waits/found_waits.h"
#include "writers/waits/job_context.h"
#include "writers/waits/match.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers {
namespace {

/// Of a whole job: collects, matches and sums up.
class Analysis : public WaitAnalysis, private EndSink {
 public:
  Analysis(std::filesystem::path folder, std::function<void()> beat)
      : folder_(std::move(folder)), beat_(std::move(beat)) {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override {
    collector_->begin_location(location);
    return {};
  }
  Status events(std::span<const Event> events) override { return collector_->add(events); }
  Status end_location() override { return collector_->end_location(); }
  Status finish(const Outcome& outcome) override;
  const WaitSummary* summary() const override { return is_finished_ ? &summary_ : nullptr; }
  Result<std::unique_ptr<CallWaits>> read_calls() override;
  Result<std::optional<CallWait>> next_call(uint32_t location) override;

 private:
  Status add_end(const MessageEnd& end, bool is_send) override {
    return (is_send ? sends_ : receives_)->add(end);
  }
  Status add_member(const Member& member) override { return members_->add(member); }

  std::filesystem::path folder_;
  std::function<void()> beat_;
  std::unique_ptr<JobContext> context_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<SortedStore<MessageEnd>> sends_;
  std::unique_ptr<SortedStore<MessageEnd>> receives_;
  std::unique_ptr<SortedStore<Member>> members_;
  std::unique_ptr<FoundWaits> waits_;
  WaitSummary summary_;
  bool is_finished_ = false;
};

Status Analysis::begin(const Model& model) {
  context_ = std::make_unique<JobContext>(model, beat_);
  EndSink* sink = this;
  collector_ = std::make_unique<Collector>(model, context_.get(), sink);
  sends_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  receives_ = std::make_unique<SortedStore<MessageEnd>>(folder_, kStoreBytes);
  members_ = std::make_unique<SortedStore<Member>>(folder_, kStoreBytes);
  waits_ = std::make_unique<FoundWaits>(folder_);
  return {};
}

Status Analysis::finish(const Outcome&) {
  Status status = collector_->finish();
  if (!status) return status;
  summary_.unmatched_count = collector_->unmatched_count();
  summary_.alike_failure_count = context_->settle_failures();
  context_->add_holes(&summary_.holes);
  const WaitSink sink = [&](const Wait& wait) { return waits_->add(wait); };
  status = match_messages(sends_.get(), receives_.get(), *context_, &summary_, sink);
  if (!status) return status;
  sends_.reset();
  receives_.reset();
  TrueTimeTable times;
  status = match_collectives(members_.get(), *context_, &summary_, &times, sink);
  if (!status) return status;
  members_.reset();
  summary_.times = times.take();
  Result<std::vector<WaitRow>> rows = waits_->sum_up([&] { context_->beat(); });
  if (!rows) return rows.error();
  summary_.rows = std::move(*rows);
  is_finished_ = true;
  return {};
}

Result<std::unique_ptr<CallWaits>> Analysis::read_calls() {
  if (!is_finished_) return Error{Code::kInvalid, "the waits are not analysed yet"};
  return waits_->read_calls();
}

Result<std::optional<CallWait>> Analysis::next_call(uint32_t location) {
  if (!is_finished_) return std::optional<CallWait>();
  return waits_->next_call(location);
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
    case WaitKind::kEarlyScan:
      return "early scan";
    case WaitKind::kNeighbors:
      return "wait for neighbours";
    case WaitKind::kCreate:
      return "wait at create";
    case WaitKind::kFree:
      return "wait at free";
    case WaitKind::kFence:
      return "wait at fence";
    case WaitKind::kFile:
      return "wait at file";
    case WaitKind::kSetInfo:
      return "wait at set_info";
  }
  return "unknown";
}

bool is_upper_bound(WaitKind kind) {
  switch (kind) {
    case WaitKind::kLateReceiver:
    case WaitKind::kCreate:
    case WaitKind::kFree:
    case WaitKind::kFence:
    case WaitKind::kFile:
    case WaitKind::kSetInfo:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<WaitAnalysis> make_wait_analysis(const std::filesystem::path& folder,
                                                 std::function<void()> beat) {
  return std::make_unique<Analysis>(folder, std::move(beat));
}

}  // namespace aon::writers
