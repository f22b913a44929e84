#include "writers/devices/launched_work.h"

#include <utility>

namespace aon::writers::devices {

/// The calls beside the work as that passes, both in order.
class LaunchedWork::Merge {
 public:
  Merge(SortedStore<Call>::Reader reader, MissingLaunches* missing)
      : reader_(std::move(reader)), missing_(missing) {}

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
    }
    return next();
  }
  void end_call() {
    if (call_ && call_->is_of_kernel != 0) missing_->add(call_->start_ns, has_work_);
  }

  SortedStore<Call>::Reader reader_;
  MissingLaunches* missing_;
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
  joined_.reset();
  work_count_ = call_count_ = left_out_call_count_ = 0;
  has_no_room_ = has_graphs_ = false;
}

/// With what the joined will take: it has a run of the file for each of the work's.
uint64_t LaunchedWork::work_bytes(uint64_t file_bytes) const {
  return file_bytes / sizeof(Item) * DeviceAnalysis::kItemBytes;
}

void LaunchedWork::leave_out_calls() {
  left_out_call_count_ += std::exchange(call_count_, 0);
  calls_.reset();
}

Status LaunchedWork::add(const Item& item) {
  if (has_no_room_) return {};
  if (!work_) work_.emplace(folder_, item_count_ * sizeof(Item));
  const bool grows = work_->next_file_bytes() > work_->file_bytes();
  const uint64_t bytes = work_bytes(work_->next_file_bytes());
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
  if (grows && calls_->next_file_bytes() + others > max_file_bytes_) {
    leave_out_calls();
    return {};
  }
  has_graphs_ = has_graphs_ || call.is_of_graph != 0;
  return calls_->add(call);
}

Result<LaunchedWork::Reader> LaunchedWork::join(const Captures& captures,
                                                MissingLaunches* missing) {
  joined_.emplace(folder_, item_count_ * sizeof(LaunchedItem));
  if (!work_) work_.emplace(folder_, 1);
  if (!calls_) calls_.emplace(folder_, 1);
  Result<SortedStore<Item>::Reader> work = work_->read();
  if (!work) return work.error();
  Result<SortedStore<Call>::Reader> calls = calls_->read();
  if (!calls) return calls.error();
  *missing = MissingLaunches(captures, has_graphs_);
  Merge merge(std::move(*calls), missing);
  Status status = merge.begin();
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
  return joined_->read();
}

}  // namespace aon::writers::devices
