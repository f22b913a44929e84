#include "writers/nccl/send_waits.h"

#include <algorithm>
#include <utility>

#include "core/spool/nccl_levels.h"
#include "writers/waits/store_state.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kRowsBytes = size_t{2} << 20;
constexpr size_t kGroupBytes = size_t{1} << 20;  ///< each of two

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

SendWaitStore::SendWaitStore(std::filesystem::path folder)
    : folder_(std::move(folder)),
      rows_(folder_, kRowsBytes),
      operations_(folder_, kGroupBytes),
      sends_(folder_, kGroupBytes) {}

Status SendWaitStore::add_operation(uint32_t communicator, uint32_t call, const PartKey& part) {
  return operations_.add({part, communicator, call});
}

Status SendWaitStore::add(const NcclProxyWork& work) {
  if (!work.is_send || work.step_count == 0) return {};
  if (work.call == kNoNcclCall || work.peer < 0) {
    ++left_out_count_;
    return {};
  }
  ++send_count_;
  return sends_.add({work.network_ns, work.gpu_ns + work.peer_ns + work.network_ns,
                     work.communicator, work.call, static_cast<uint32_t>(work.peer), work.channel});
}

Status SendWaitStore::end_group() {
  Status status = send_count_ != 0 ? join() : Status();
  operations_ = SortedStore<Operation>(folder_, kGroupBytes);
  sends_ = SortedStore<Send>(folder_, kGroupBytes);
  send_count_ = 0;
  return status;
}

/// Both are in order of communicator and call.
Status SendWaitStore::join() {
  Result<SortedStore<Operation>::Reader> operations = operations_.read();
  if (!operations) return operations.error();
  Result<SortedStore<Send>::Reader> sends = sends_.read();
  if (!sends) return sends.error();
  Result<const Send*> send = sends->next();
  const auto skip = [&] {
    ++left_out_count_;
    send = sends->next();
  };
  for (;;) {
    const Result<const Operation*> operation = operations->next();
    if (!operation) return operation.error();
    if (*operation == nullptr) break;
    while (send && *send != nullptr && (*send)->is_before(**operation)) skip();
    SendWaits longest{(*operation)->part, 0, 0, 0, 0};
    SendWaits link = longest;
    uint32_t channel = 0;
    bool is_known = false;
    while (send && *send != nullptr && (*send)->is_of(**operation)) {
      const Send& one = **send;
      if (!is_known || one.peer != link.peer || one.channel != channel)
        link = {longest.part, 0, 0, one.peer, 0};
      channel = one.channel;
      is_known = true;
      link.network_ns += one.network_ns;
      link.all_ns += one.all_ns;
      if (link.network_ns >= longest.network_ns) longest = link;
      send = sends->next();
    }
    if (!send) return send.error();
    if (!is_known) continue;
    if (Status status = rows_.add(longest); !status) return status;
  }
  while (send && *send != nullptr) skip();
  return send ? Status() : Status(send.error());
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
  while (status && next_ != nullptr && (next_->part < first || next_->part.is_of_one(first))) {
    // More is damage, and kept out of memory.
    if (next_->part.is_of_one(first) && next_->part.place < member_count &&
        (to->empty() || to->back().part.place != next_->part.place))
      to->push_back(*next_);
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
