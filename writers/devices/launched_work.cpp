#include "writers/devices/launched_work.h"

#include <utility>

namespace aon::writers::devices {

/// The external ids beside the calls as these pass, both in order.
class LaunchedWork::IdsOfCalls {
 public:
  IdsOfCalls(SortedStore<CallId>::Reader reader, ExternalIdTotals* totals)
      : reader_(std::move(reader)), totals_(totals) {}

  Status begin() { return next(); }
  /// The call, with those inside of it, is what work is of from now on.
  Status begin_call(const Call& call) {
    totals_->begin_call();
    while (next_ != nullptr && (next_->is_before(call) || next_->is_of(call))) {
      if (next_->is_of(call)) totals_->add(*next_);
      if (Status status = next(); !status) return status;
    }
    return {};
  }
  void add_work(const Item& item) { totals_->add_work(item.end_ns - item.start_ns); }

 private:
  Status next() {
    Result<const CallId*> id = reader_.next();
    if (!id) return id.error();
    next_ = *id;
    return {};
  }

  SortedStore<CallId>::Reader reader_;
  ExternalIdTotals* totals_;
  const CallId* next_ = nullptr;
};

/// The calls beside the work as that passes, both in order.
class LaunchedWork::Merge {
 public:
  Merge(SortedStore<Call>::Reader reader, MissingLaunches* missing, std::optional<IdsOfCalls>* ids)
      : reader_(std::move(reader)), missing_(missing), ids_(ids) {}

  Status begin() { return next(); }
  Result<LaunchedItem> pass(const Item& item) {
    while (next_ != nullptr && next_->is_before(item.correlation, item.start_ns)) {
      if (Status status = advance(); !status) return status.error();
    }
    LaunchedItem launched{};
    launched.item = item;
    if (!call_ || !call_->launched(item.correlation, item.start_ns)) return launched;
    launched.call = *call_;
    has_work_ = true;
    if (*ids_) (*ids_)->add_work(item);
    return launched;
  }
  Status finish() {
    while (next_ != nullptr) {
      if (Status status = advance(); !status) return status;
    }
    end_call();
    return {};
  }

 private:
  Status next() {
    Result<const Call*> call = reader_.next();
    if (!call) return call.error();
    next_ = *call;
    return {};
  }
  Status advance() {
    if (!call_ || !call_->encloses(*next_)) {
      end_call();
      call_ = *next_;
      has_work_ = false;
      if (*ids_) {
        if (Status status = (*ids_)->begin_call(*call_); !status) return status;
      }
    }
    return next();
  }
  void end_call() {
    if (call_ && call_->is_of_kernel != 0) missing_->add(call_->start_ns, has_work_);
  }

  SortedStore<Call>::Reader reader_;
  MissingLaunches* missing_;
  std::optional<IdsOfCalls>* ids_;  ///< nothing: the program gave none
  const Call* next_ = nullptr;
  std::optional<Call> call_;
  bool has_work_ = false;
};

LaunchedWork::LaunchedWork(std::filesystem::path folder, uint64_t max_file_bytes,
                           size_t store_bytes)
    : folder_(std::move(folder)),
      max_file_bytes_(max_file_bytes),
      item_count_(store_bytes / sizeof(Item)) {}

void LaunchedWork::clear() {
  work_.reset();
  calls_.reset();
  ids_.reset();
  joined_.reset();
  work_count_ = call_count_ = left_out_call_count_ = id_count_ = left_out_id_count_ = 0;
  has_no_room_ = has_graphs_ = false;
}

/// With what the joined will take: it has a run of the file for each of the work's.
uint64_t LaunchedWork::work_bytes(uint64_t file_bytes) const {
  return file_bytes / sizeof(Item) * DeviceAnalysis::kItemBytes;
}

void LaunchedWork::leave_out_calls() {
  left_out_call_count_ += std::exchange(call_count_, 0);
  calls_.reset();
  leave_out_ids();
}

void LaunchedWork::leave_out_ids() {
  left_out_id_count_ += std::exchange(id_count_, 0);
  ids_.reset();
}

Status LaunchedWork::add(const Item& item) {
  if (has_no_room_) return {};
  if (!work_) work_.emplace(folder_, item_count_ * sizeof(Item));
  const bool grows = work_->next_file_bytes() > work_->file_bytes();
  const uint64_t bytes = work_bytes(work_->next_file_bytes());
  const uint64_t call_bytes = calls_ ? calls_->file_bytes() : 0;
  if (grows && ids_ && bytes + call_bytes + id_bytes() > max_file_bytes_) leave_out_ids();
  if (grows && calls_ && bytes + calls_->file_bytes() > max_file_bytes_) leave_out_calls();
  if (grows && bytes > max_file_bytes_) {
    clear();
    has_no_room_ = true;
    return {};
  }
  ++work_count_;
  return work_->add(item);
}

Status LaunchedWork::add(const Call& call) {
  if (has_no_room_) return {};
  ++call_count_;
  if (left_out_call_count_ != 0) {
    leave_out_calls();
    return {};
  }
  if (!calls_) calls_.emplace(folder_, item_count_ * sizeof(Item));
  const bool grows = calls_->next_file_bytes() > calls_->file_bytes();
  const uint64_t others = work_ ? work_bytes(work_->file_bytes()) : 0;
  if (grows && ids_ && calls_->next_file_bytes() + others + id_bytes() > max_file_bytes_)
    leave_out_ids();
  if (grows && calls_->next_file_bytes() + others > max_file_bytes_) {
    leave_out_calls();
    return {};
  }
  has_graphs_ = has_graphs_ || call.is_of_graph != 0;
  return calls_->add(call);
}

Status LaunchedWork::add(const CallId& id) {
  if (has_no_room_) return {};
  ++id_count_;
  if (left_out_id_count_ + left_out_call_count_ != 0) {
    leave_out_ids();
    return {};
  }
  if (!ids_) ids_.emplace(folder_, item_count_ * sizeof(CallId));
  const bool grows = ids_->next_file_bytes() > ids_->file_bytes();
  const uint64_t others =
      (work_ ? work_bytes(work_->file_bytes()) : 0) + (calls_ ? calls_->file_bytes() : 0);
  if (grows && ids_->next_file_bytes() + others > max_file_bytes_) {
    leave_out_ids();
    return {};
  }
  return ids_->add(id);
}

Result<LaunchedWork::Reader> LaunchedWork::join(const Captures& captures, MissingLaunches* missing,
                                                ExternalIdTotals* totals) {
  joined_.emplace(folder_, item_count_ * sizeof(LaunchedItem));
  if (!work_) work_.emplace(folder_, 1);
  if (!calls_) calls_.emplace(folder_, 1);
  Result<SortedStore<Item>::Reader> work = work_->read();
  if (!work) return work.error();
  Result<SortedStore<Call>::Reader> calls = calls_->read();
  if (!calls) return calls.error();
  *missing = MissingLaunches(captures, has_graphs_);
  std::optional<IdsOfCalls> ids;
  Status status;
  if (ids_) {
    Result<SortedStore<CallId>::Reader> reader = ids_->read();
    if (!reader) return reader.error();
    ids.emplace(std::move(*reader), totals);
    status = ids->begin();
  }
  Merge merge(std::move(*calls), missing, &ids);
  if (status) status = merge.begin();
  while (status) {
    const Result<const Item*> item = work->next();
    if (!item) return item.error();
    if (*item == nullptr) break;
    const Result<LaunchedItem> launched = merge.pass(**item);
    if (!launched) return launched.error();
    status = joined_->add(*launched);
  }
  if (status) status = merge.finish();
  if (!status) return status.error();
  missing->sort();
  work_.reset();
  calls_.reset();
  ids_.reset();
  return joined_->read();
}

}  // namespace aon::writers::devices
