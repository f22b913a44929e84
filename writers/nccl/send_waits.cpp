#include "writers/nccl/send_waits.h"

#include <algorithm>
#include <utility>

#include "core/spool/nccl_levels.h"
#include "writers/waits/store_state.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kRowsBytes = size_t{2} << 20;
constexpr size_t kGroupBytes = size_t{1} << 20;  ///< each of two
constexpr uint64_t kStepsBehind = 7;             ///< NCCL has eight under way

/// Whether the agent, which tells where each process stands, never saw it at level step.
bool was_lower(const spool::Process& process) {
  bool is_told = false;
  for (const BudgetDefinition& change : process.budget_changes) {
    if (spool::is_nccl_answer(change)) {
      const NcclAnswer answer = NcclAnswer::of(change.old_mode);
      if (std::max(answer.before, answer.level) >= NcclLevel::kStep) return false;
      is_told = true;
    } else if (spool::is_nccl_level_change(change)) {
      const NcclLevel before = spool::nccl_level_in(change, change.old_mode);
      if (std::max(before, spool::nccl_level_in(change, change.new_mode)) >= NcclLevel::kStep)
        return false;
    }
  }
  return is_told;
}

}  // namespace

/// The region is defined from level gpu on.
bool may_have_steps(const Group& group) {
  return group.process != nullptr && group.process->regions.count(kNcclStepSite) != 0 &&
         !was_lower(*group.process);
}

bool may_have_steps(const Model& model) {
  return std::any_of(model.groups.begin(), model.groups.end(),
                     [](const Group& group) { return may_have_steps(group); });
}

/// The row of the receives of what a link's sends sent.
static const SendWaits* receives_of(std::span<const SendWaits> rows, const SendWaits& sends,
                                    bool is_transfer) {
  SendWaits wanted{sends.part, 0, 0, 0, sends.part.place, 1};
  wanted.part.place = sends.peer;
  if (is_transfer) {  // its only one; places are no ranks there
    wanted.part.place = 1;
    wanted.peer = 0;
  }
  const auto found = std::lower_bound(rows.begin(), rows.end(), wanted);
  if (found == rows.end() || found->part.place != wanted.part.place || found->is_receive == 0)
    return nullptr;
  return is_transfer || found->peer == wanted.peer ? &*found : nullptr;
}

/// By sockets sends wait for the network while what came waits for the receiver's GPU.
LongestWaits find_longest(std::span<const SendWaits> rows, bool is_transfer) {
  LongestWaits longest;
  for (const SendWaits& row : rows) {
    if (row.is_receive != 0) continue;
    longest.network_ns = std::max(longest.network_ns, row.network_ns);
    if (longest.gpu == nullptr || row.gpu_ns > longest.gpu->gpu_ns) longest.gpu = &row;
    const SendWaits* receives = receives_of(rows, row, is_transfer);
    if (receives != nullptr && is_most(receives->gpu_ns, row.network_ns)) continue;
    if (longest.link == nullptr || row.network_ns > longest.link->network_ns) longest.link = &row;
  }
  for (const SendWaits& row : rows) {
    if (row.is_receive != 0) continue;
    if (&row != longest.link) longest.others_ns.push_back(row.network_ns);
    if (&row != longest.gpu) longest.other_gpus_ns.push_back(row.gpu_ns);
  }
  return longest;
}

SendWaitStore::SendWaitStore(std::filesystem::path folder)
    : folder_(std::move(folder)),
      rows_(folder_, kRowsBytes),
      operations_(folder_, kGroupBytes),
      works_(folder_, kGroupBytes) {}

Status SendWaitStore::add_operation(uint32_t communicator, uint64_t call, const PartKey& part,
                                    uint64_t begin_ns) {
  return operations_.add({part, begin_ns, call, communicator});
}

Status SendWaitStore::add(const NcclProxyWork& work) {
  const bool is_before_data = work.step_count == 0 && work.gpu_ns != 0;
  if (work.step_count == 0 && !is_before_data) return {};
  if (work.call == kNoNcclCall || work.peer < 0) {
    left_out_count_ += work.is_send ? 1 : 0;
    return {};
  }
  ++work_count_;
  return works_.add({.gpu_ns = work.gpu_ns,
                     .network_ns = work.network_ns,
                     .other_ns = work.peer_ns + work.flush_ns,
                     .first_data_ns = is_before_data && work.is_send ? work.end_ns : 0,
                     .waited_ns = work.longest_ns,
                     .call = work.call,
                     .communicator = work.communicator,
                     .channel = work.channel,
                     .is_receive = work.is_send ? 0u : 1u,
                     .peer = static_cast<uint32_t>(work.peer)});
}

/// What its steps waited for the GPU before the kernel began. All are under way from the first
/// one's start to the first data.
uint64_t SendWaitStore::Work::before_ns(uint64_t begin_ns) const {
  if (first_data_ns == 0) return 0;
  if (begin_ns >= first_data_ns) return gpu_ns;
  const uint64_t after_ns = first_data_ns - begin_ns;
  if (after_ns >= waited_ns) return 0;
  const double share = 1 - static_cast<double>(after_ns) / static_cast<double>(waited_ns);
  return std::min(gpu_ns, static_cast<uint64_t>(static_cast<double>(gpu_ns) * share));
}

/// Of a member's part of an operation, whose records come by channel, direction and peer.
class SendWaitStore::Sums {
 public:
  explicit Sums(const Operation& operation)
      : begin_ns_(operation.begin_ns), longest_{operation.part, 0, 0, 0, 0, 0} {}

  void add(const Work& work) {
    const bool is_other_channel = work.channel != channel_;
    if (has_piece_ &&
        (is_other_channel || work.is_receive != piece_.is_receive || work.peer != piece_.peer))
      end_piece();
    if (is_other_channel) end_channel();
    channel_ = work.channel;
    if (!has_piece_) {
      piece_ = {longest_.part, 0, 0, 0, work.peer, work.is_receive};
      peer_ns_ = 0;
    }
    has_piece_ = true;
    peer_ns_ += work.is_receive == 0 ? work.other_ns : 0;
    const uint64_t gpu_ns = work.gpu_ns - work.before_ns(begin_ns_);
    piece_.network_ns += work.network_ns;
    piece_.all_ns += gpu_ns + work.network_ns + work.other_ns;
    piece_.gpu_ns += gpu_ns;
  }

  Status put(SortedStore<SendWaits>* to) {
    if (has_piece_) end_piece();
    end_channel();
    Status status = has_sends_ ? to->add(longest_) : Status();
    for (size_t i = 0; status && i < sources_.size(); ++i) status = to->add(sources_[i]);
    return status;
  }

 private:
  /// On one channel, to or from one peer. Sends go on in their order: while the first waits for the
  /// peer, those behind it are said to wait for the GPU, which may long have given their data.
  void end_piece() {
    has_piece_ = false;
    const uint64_t gpu_ns = piece_.gpu_ns - std::min(piece_.gpu_ns, kStepsBehind * peer_ns_);
    held_ns_ = std::min(held_ns_, is_most(gpu_ns, piece_.all_ns) ? gpu_ns : 0);
    if (piece_.is_receive != 0) return add_source();
    channel_has_sends_ = true;
    has_sends_ = true;
    if (piece_.network_ns < longest_.network_ns) return;
    longest_.network_ns = piece_.network_ns;
    longest_.all_ns = piece_.all_ns;
    longest_.peer = piece_.peer;
  }
  void end_channel() {
    if (channel_has_sends_ && channel_has_receives_)
      longest_.gpu_ns = std::max(longest_.gpu_ns, held_ns_);
    channel_has_sends_ = false;
    channel_has_receives_ = false;
    held_ns_ = UINT64_MAX;
  }
  void add_source() {
    channel_has_receives_ = true;
    const auto is_longer = [](const SendWaits& a, const SendWaits& b) {
      return a.gpu_ns < b.gpu_ns;
    };
    auto source = std::find_if(sources_.begin(), sources_.end(),
                               [&](const SendWaits& one) { return one.peer == piece_.peer; });
    if (source == sources_.end()) {
      if (sources_.size() < kMaxSources) return sources_.push_back(piece_);
      source = std::min_element(sources_.begin(), sources_.end(), is_longer);
    }
    if (is_longer(*source, piece_)) *source = piece_;
  }

  uint64_t begin_ns_;
  SendWaits longest_;
  std::vector<SendWaits> sources_;
  bool has_sends_ = false;
  SendWaits piece_ = {};
  bool has_piece_ = false;
  uint64_t peer_ns_ = 0;  ///< its sends waited for the peer
  // Of the channel.
  uint32_t channel_ = UINT32_MAX;
  uint64_t held_ns_ = UINT64_MAX;
  bool channel_has_sends_ = false;
  bool channel_has_receives_ = false;
};

Status SendWaitStore::end_group() {
  Status status = work_count_ != 0 ? join() : Status();
  operations_ = SortedStore<Operation>(folder_, kGroupBytes);
  works_ = SortedStore<Work>(folder_, kGroupBytes);
  work_count_ = 0;
  return status;
}

/// Both are in order of communicator and call.
Status SendWaitStore::join() {
  Result<SortedStore<Operation>::Reader> operations = operations_.read();
  if (!operations) return operations.error();
  Result<SortedStore<Work>::Reader> works = works_.read();
  if (!works) return works.error();
  Result<const Work*> work = works->next();
  const auto skip = [&] {
    left_out_count_ += (*work)->is_receive == 0 ? 1 : 0;
    work = works->next();
  };
  for (;;) {
    const Result<const Operation*> operation = operations->next();
    if (!operation) return operation.error();
    if (*operation == nullptr) break;
    while (work && *work != nullptr && (*work)->is_before(**operation)) skip();
    Sums sums(**operation);
    for (; work && *work != nullptr && (*work)->is_of(**operation); work = works->next())
      sums.add(**work);
    if (!work) return work.error();
    if (Status status = sums.put(&rows_); !status) return status;
  }
  while (work && *work != nullptr) skip();
  return work ? Status() : Status(work.error());
}

Result<SendWaitStore::Reader> SendWaitStore::read() {
  Result<SortedStore<SendWaits>::Reader> rows = rows_.read();
  if (!rows) return rows.error();
  return Reader(std::move(*rows));
}

Status SendWaitStore::Reader::advance() {
  const Result<const SendWaits*> next = rows_.next();
  if (!next) return next.error();
  next_ = *next;
  is_begun_ = true;
  return {};
}

Status SendWaitStore::Reader::take(const PartKey& operation, size_t member_count,
                                   std::vector<SendWaits>* to) {
  to->clear();
  PartKey first = operation;
  first.place = 0;
  Status status = is_begun_ ? Status() : advance();
  size_t member_rows = 0;
  while (status && next_ != nullptr && (next_->part < first || next_->part.is_of_one(first))) {
    if (to->empty() || to->back().part.place != next_->part.place) member_rows = 0;
    const bool is_again = member_rows != 0 && to->back().is_receive == next_->is_receive &&
                          (next_->is_receive == 0 || to->back().peer == next_->peer);
    // More is damage, and kept out of memory.
    if (next_->part.is_of_one(first) && next_->part.place < member_count && !is_again &&
        member_rows <= kMaxSources) {
      to->push_back(*next_);
      ++member_rows;
    }
    status = advance();
  }
  return status;
}

Status SendWaitStore::save(StateOut* out) {
  if (Status status = end_group(); !status) return status;
  out->put(std::exchange(left_out_count_, 0));
  Status status = save_items(&rows_, out);
  rows_ = SortedStore<SendWaits>(folder_, kRowsBytes);
  return status;
}

Status SendWaitStore::load(const Model& model, StateIn* in) {
  uint64_t left_out_count = 0;
  if (!in->get(&left_out_count)) return in->status();
  left_out_count_ += left_out_count;
  return load_items<SendWaits>(in, [&](const SendWaits& row) {
    if (!in->check(row.part.communicator < model.communicators.size())) return in->status();
    return rows_.add(row);
  });
}

}  // namespace aon::writers::nccl
