#include "writers/waits/shares.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "writers/share/files.h"
#include "writers/waits/collector.h"
#include "writers/waits/found_waits.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using share::FileReader;
using share::FileWriter;

enum class Content : uint32_t { kContext, kSends, kReceives, kMembers, kWaits, kSummary };

constexpr uint64_t key_of(Content content, uint32_t share = 0) {
  return pack(static_cast<uint32_t>(content), share);
}

/// An item on its way to a share.
template <class Item>
struct Sent {
  uint32_t share;
  Item item;

  bool operator<(const Sent& other) const {
    return share != other.share ? share < other.share : item < other.item;
  }
};

template <class Item>
Status write_items(SortedStore<Sent<Item>>* store, Content content, FileWriter* file) {
  auto reader = store->read();
  if (!reader) return reader.error();
  share::ItemWriter<Item> items(file);
  for (;;) {
    Result<const Sent<Item>*> next = reader->next();
    if (!next) return next.error();
    if (*next == nullptr) return items.flush();
    Status status = items.add(key_of(content, (*next)->share), (*next)->item);
    if (!status) return status;
  }
}

bool fits(const MessageEnd& end, const Model& model) {
  return std::max(end.location, end.poster) < model.locations.size();
}
bool fits(const Member& member, const Model& model) {
  const size_t object_count = member.meeting == Meeting::kWindow ? model.windows.size()
                              : member.meeting == Meeting::kFile ? model.files.size()
                                                                 : model.communicators.size();
  return member.location < model.locations.size() && member.meeting <= Meeting::kFile &&
         member.communicator < model.communicators.size() && member.object() < object_count;
}

/// What was told by a process that knows the same job.
template <class Item>
Status read_into(const FileReader& file, Content content, uint32_t share, const Model& model,
                 SortedStore<Item>* store) {
  return share::read_items<Item>(file, key_of(content, share), [&](const Item& item) {
    if (!fits(item, model)) return Status(Error{Code::kDamaged, "a share of another job"});
    return store->add(item);
  });
}

class Share final : public WaitShare, private EndSink {
 public:
  Share(const fs::path& scratch, const ShareMap& shares, std::function<void()> beat)
      : shares_(shares),
        beat_(std::move(beat)),
        sends_(scratch, kStoreBytes),
        receives_(scratch, kStoreBytes),
        members_(scratch, kStoreBytes) {}

  Status begin(const Model& model) override {
    model_ = &model;
    context_.emplace(model, beat_);
    EndSink* sink = this;
    collector_.emplace(model, &*context_, sink);
    return {};
  }
  Status begin_location(const Location& location) override {
    collector_->begin_location(location);
    return {};
  }
  Status events(std::span<const Event> events) override { return collector_->add(events); }
  Status end_location() override { return collector_->end_location(); }
  Status finish(const Outcome&) override { return {}; }
  Status save(StateOut*) override { return {}; }

  Status write(const fs::path& folder, uint32_t share) override {
    Status status = collector_->finish();
    if (!status) return status;
    Result<FileWriter> file = FileWriter::create(ends_file(folder, share));
    if (!file) return file.error();
    StateOut out;
    context_->save(&out);
    out.put(collector_->unmatched_count());
    status = file->add(key_of(Content::kContext), out.bytes());
    if (status) status = write_items(&sends_, Content::kSends, &*file);
    if (status) status = write_items(&receives_, Content::kReceives, &*file);
    if (status) status = write_items(&members_, Content::kMembers, &*file);
    return status ? file->finish() : status;
  }

 private:
  Status add_end(const MessageEnd& end, bool is_send) override {
    const std::vector<int64_t>& members = model_->communicators[end.space >> 32].members;
    const auto destination = static_cast<uint32_t>(end.pair);
    const int64_t group = destination < members.size() ? members[destination] : -1;
    const bool is_known = group >= 0 && static_cast<size_t>(group) < shares_.of_group.size();
    const uint32_t share = is_known ? shares_.of_group[static_cast<size_t>(group)] : 0;
    return (is_send ? sends_ : receives_).add({share, end});
  }
  Status add_member(const Member& member) override {
    const uint64_t number = member.number + (uint64_t{member.preparation} << 32);
    const uint64_t mixed = (number * 0x9e3779b97f4a7c15u + member.communicator) >> 16;
    return members_.add({static_cast<uint32_t>(mixed % shares_.count), member});
  }

  const ShareMap& shares_;
  std::function<void()> beat_;
  const Model* model_ = nullptr;
  std::optional<JobContext> context_;
  std::optional<Collector> collector_;
  SortedStore<Sent<MessageEnd>> sends_;
  SortedStore<Sent<MessageEnd>> receives_;
  SortedStore<Sent<Member>> members_;
};

void save_summary(const WaitSummary& summary, const TrueTimeTable& times, StateOut* out) {
  out->put(summary.clock_violations.message_count);
  out->put(summary.clock_violations.collective_count);
  out->put(summary.clock_violations.max_ns);
  out->put(summary.clock_violations.by_nodes);
  out->put(summary.message_count);
  out->put(summary.unmatched_count);
  out->put(summary.collective_count);
  out->put(summary.incomplete_count);
  out->put(summary.of_some_count);
  out->put(summary.alike_failure_count);
  out->put(summary.times_left_out_count);
  out->put(summary.uncompared_count);
  for (const uint64_t count : summary.holes.counts) out->put(count);
  summary.lateness.save(out);
  times.save(out);
}

bool add_count(StateIn* in, uint64_t* sum) {
  uint64_t count = 0;
  if (!in->get(&count)) return false;
  *sum += count;
  return true;
}

Status load_violations(StateIn* in, ClockViolations* violations) {
  ClockViolations one;
  const bool is_good = add_count(in, &violations->message_count) &&
                       add_count(in, &violations->collective_count) && in->get(&one.max_ns) &&
                       in->get(&one.by_nodes);
  if (!is_good) return in->status();
  violations->max_ns = std::max(violations->max_ns, one.max_ns);
  for (const auto& [nodes, early_ns] : one.by_nodes) {
    uint64_t& largest_ns = violations->by_nodes[nodes];
    largest_ns = std::max(largest_ns, early_ns);
  }
  return {};
}

Status load_summary(StateIn* in, WaitSummary* summary, TrueTimeTable* times) {
  Status status = load_violations(in, &summary->clock_violations);
  if (!status) return status;
  for (uint64_t* sum :
       {&summary->message_count, &summary->unmatched_count, &summary->collective_count,
        &summary->incomplete_count, &summary->of_some_count, &summary->alike_failure_count,
        &summary->times_left_out_count, &summary->uncompared_count}) {
    if (!add_count(in, sum)) return in->status();
  }
  for (uint64_t& sum : summary->holes.counts) {
    if (!add_count(in, &sum)) return in->status();
  }
  status = summary->lateness.load(in);
  return status ? times->load(in, &summary->times_left_out_count) : status;
}

/// The shares have the calls.
class NoCalls final : public CallWaits {
 public:
  Result<std::optional<CallWait>> next(uint32_t) override { return std::optional<CallWait>(); }
};

/// What is known after the shares have matched: calls by share, or none.
class Loaded final : public WaitAnalysis {
 public:
  Loaded(WaitSummary summary, std::unique_ptr<FoundWaits> waits)
      : summary_(std::move(summary)), waits_(std::move(waits)) {}

  Status begin(const Model&) override { return {}; }
  Status begin_location(const Location&) override { return {}; }
  Status events(std::span<const Event>) override { return {}; }
  Status end_location() override { return {}; }
  Status finish(const Outcome&) override { return {}; }
  const WaitSummary* summary() const override { return &summary_; }
  Result<std::unique_ptr<CallWaits>> read_calls() override {
    if (waits_) return waits_->read_calls();
    return std::unique_ptr<CallWaits>(std::make_unique<NoCalls>());
  }
  Result<std::optional<CallWait>> next_call(uint32_t location) override {
    return waits_ ? waits_->next_call(location) : std::optional<CallWait>();
  }

 private:
  WaitSummary summary_;
  std::unique_ptr<FoundWaits> waits_;
};

/// One share's matching.
class Match {
 public:
  Match(const Model& model, const ShareMap& shares, uint32_t share, const fs::path& scratch,
        const std::function<void()>& beat)
      : model_(model),
        shares_(shares),
        share_(share),
        context_(model, beat),
        sends_(scratch, kStoreBytes),
        receives_(scratch, kStoreBytes),
        members_(scratch, kStoreBytes),
        waits_(scratch, kStoreBytes) {}

  /// All of them, before run().
  Status load(const fs::path& folder, uint32_t from) {
    Result<FileReader> file = FileReader::open(ends_file(folder, from));
    if (!file) return file.error();
    Status status = file->read(key_of(Content::kContext), [&](std::span<const char> bytes) {
      StateIn in(bytes);
      Status loaded = context_.load(&in);
      uint64_t unmatched_count = 0;
      if (loaded && !in.get(&unmatched_count)) return in.status();
      if (from == share_) summary_.unmatched_count += unmatched_count;  // each share tells its own
      return loaded;
    });
    if (status) status = read_into(*file, Content::kSends, share_, model_, &sends_);
    if (status) status = read_into(*file, Content::kReceives, share_, model_, &receives_);
    return status ? read_into(*file, Content::kMembers, share_, model_, &members_) : status;
  }

  Status run(const fs::path& folder) {
    const WaitSink sink = [&](const Wait& wait) {
      return waits_.add({shares_.of_group[model_.locations[wait.location].group], wait});
    };
    const uint64_t alike_failure_count = context_.settle_failures();  // all shares see all of them
    if (share_ == 0) {
      summary_.alike_failure_count = alike_failure_count;
      context_.add_holes(&summary_.holes);
    }
    TrueTimeTable times;
    Status status = match_messages(&sends_, &receives_, context_, &summary_, sink);
    if (status) status = match_collectives(&members_, context_, &summary_, &times, sink);
    if (!status) return status;
    Result<FileWriter> file = FileWriter::create(waits_file(folder, share_));
    if (!file) return file.error();
    StateOut out;
    save_summary(summary_, times, &out);
    status = file->add(key_of(Content::kSummary), out.bytes());
    if (status) status = write_items(&waits_, Content::kWaits, &*file);
    return status ? file->finish() : status;
  }

 private:
  const Model& model_;
  const ShareMap& shares_;
  uint32_t share_;
  JobContext context_;
  SortedStore<MessageEnd> sends_;
  SortedStore<MessageEnd> receives_;
  SortedStore<Member> members_;
  SortedStore<Sent<Wait>> waits_;
  WaitSummary summary_;
};

}  // namespace

fs::path ends_file(const fs::path& folder, uint32_t share) {
  return folder / ("ends." + std::to_string(share));
}

fs::path waits_file(const fs::path& folder, uint32_t share) {
  return folder / ("waits." + std::to_string(share));
}

std::unique_ptr<WaitShare> make_wait_share(const fs::path& scratch, const ShareMap& shares,
                                           std::function<void()> beat) {
  return std::make_unique<Share>(scratch, shares, std::move(beat));
}

Status match_share(const Model& model, const ShareMap& shares, uint32_t share,
                   const fs::path& folder, const fs::path& scratch,
                   const std::function<void()>& beat) {
  Match match(model, shares, share, scratch, beat);
  for (uint32_t from = 0; from < shares.count; ++from) {
    if (Status status = match.load(folder, from); !status) return status;
  }
  return match.run(folder);
}

Result<std::unique_ptr<WaitAnalysis>> make_share_waits(const ShareMap& shares, uint32_t share,
                                                       const fs::path& folder,
                                                       const fs::path& scratch,
                                                       const std::function<void()>& beat) {
  auto waits = std::make_unique<FoundWaits>(scratch);
  for (uint32_t from = 0; from < shares.count; ++from) {
    Result<FileReader> file = FileReader::open(waits_file(folder, from));
    if (!file) return file.error();
    Status status = share::read_items<Wait>(*file, key_of(Content::kWaits, share),
                                            [&](const Wait& wait) { return waits->add(wait); });
    if (!status) return status.error();
  }
  WaitSummary summary;
  Result<std::vector<WaitRow>> rows = waits->sum_up(beat);
  if (!rows) return rows.error();
  summary.rows = std::move(*rows);
  return std::unique_ptr<WaitAnalysis>(
      std::make_unique<Loaded>(std::move(summary), std::move(waits)));
}

Result<WaitSummary> load_wait_summary(const ShareMap& shares, const fs::path& folder) {
  WaitSummary summary;
  TrueTimeTable times;
  for (uint32_t share = 0; share < shares.count; ++share) {
    Result<FileReader> file = FileReader::open(waits_file(folder, share));
    if (!file) return file.error();
    Status status = file->read(key_of(Content::kSummary), [&](std::span<const char> bytes) {
      StateIn in(bytes);
      return load_summary(&in, &summary, &times);
    });
    if (!status) return status.error();
  }
  summary.times = times.take();
  return summary;
}

std::unique_ptr<WaitAnalysis> make_loaded_waits(WaitSummary summary) {
  return std::make_unique<Loaded>(std::move(summary), nullptr);
}

}  // namespace aon::writers
