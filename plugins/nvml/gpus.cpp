#include "nvml/gpus.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace aon::nvml {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr const char* kGpmName = "GPM";
constexpr const char* kXidName = "Xid events";
constexpr const char* kPaceNames[kPaceCount] = {"GPM", "power, clocks and the like", "PCIe",
                                                "ECC errors and the like"};
constexpr SeriesText kXidCount{"health/xid-errors", "1",
                               "Xid events: errors that the driver reported"};
constexpr SeriesText kXidNumber{"health/xid", "1", "number of the latest Xid event"};

std::string time_text(uint64_t ns) {
  return ns < kNsPerMs ? std::to_string(ns / 1000) + " us"
                       : std::to_string((ns + kNsPerMs / 2) / kNsPerMs) + " ms";
}

void add(uint32_t gpu, Values from, uint64_t read_ns, std::vector<GpuValue>* values) {
  for (const Value& value : from.take()) values->push_back({gpu, value, read_ns});
}

}  // namespace

uint64_t steady_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Gpus::Gpus(const char* library_name, std::function<uint64_t()> clock_ns, uint32_t rest)
    : library_(library_name),
      clock_ns_(std::move(clock_ns)),
      rest_(rest),
      found_(library_.state()) {}

bool Gpus::find() {
  if (!library_.init()) {
    found_ = library_.state();
    return false;
  }
  gpus_ = find_gpus(library_, &found_);
  if (gpus_.empty()) {
    library_.shutdown();
    return false;
  }
  for (const Gpu& gpu : gpus_) {
    labels_.push_back(gpu.name + " " + gpu.uuid);
    gpm_.push_back(gpu.has_gpm ? std::make_unique<Gpm>(library_.call(), gpu.whole, gpu.instance)
                               : nullptr);
  }
  xid_counts_.assign(gpus_.size(), 0);
  events_ = std::make_unique<Events>(library_.call());
  const std::vector<uint32_t> codes = events_->watch(gpus_);
  for (uint32_t i = 0; i < gpus_.size(); ++i) {
    // No other events come of it: one refusal is final.
    if (codes[i] != kSuccess)
      faults_.note(i, kXidName, codes[i] == kNoPermission ? codes[i] : uint32_t{kNotSupported});
  }
  return true;
}

bool Gpus::reads_gpm(uint32_t gpu) const {
  const auto finished = finished_.find({gpu, kGpmName});
  return gpus_[gpu].has_gpm && (finished == finished_.end() || !finished->second);
}

bool Gpus::asks(const Query& query, uint32_t gpu) const {
  if (gpus_[gpu].instance) return query.asks == Asks::kEverything;
  return query.asks != Asks::kGpusWithoutGpm || !reads_gpm(gpu);
}

bool Gpus::has_pace(Pace pace) const {
  if (pace == Pace::kOften || pace == Pace::kSeldom) return true;
  for (uint32_t i = 0; i < gpus_.size(); ++i) {
    if (pace == Pace::kGpm ? reads_gpm(i) : !reads_gpm(i) && !gpus_[i].instance) return true;
  }
  return false;
}

uint64_t Gpus::rest_ns(uint64_t cost_ns) const {
  const uint64_t of_budget_ns = cost_ns * (rest_ / std::max<size_t>(gpus_.size(), 1));
  return std::max(cost_ns * kRestPerCost, std::min(of_budget_ns, kMaxRestNs));
}

Values Gpus::ask(uint32_t gpu, const char* query, const std::function<uint32_t(Values*)>& read) {
  bool& is_finished = finished_[{gpu, query}];
  Values values;
  if (is_finished || faults_.is_lost(gpu)) return values;
  query_.store(query, std::memory_order_relaxed);
  is_finished = !faults_.note(gpu, query, read(&values));
  return values;
}

void Gpus::read_pace(Pace pace, std::vector<GpuValue>* values) {
  for (uint32_t i = 0; i < gpus_.size(); ++i) {
    if (pace == Pace::kGpm && gpm_[i] != nullptr) {
      Values happened = ask(i, kGpmName, [&](Values* to) { return gpm_[i]->read(to); });
      add(i, std::move(happened), steady_ns(), values);
    }
    const uint64_t row_ns = steady_ns();
    if (pace == Pace::kSeldom && !gpus_[i].instance && events_->is_watching(i)) {
      Values so_far;
      so_far.count(kXidCount, xid_counts_[i]);
      add(i, std::move(so_far), row_ns, values);
    }
    for (const Query& query : queries()) {
      if (query.pace != pace || !asks(query, i)) continue;
      Values answer = ask(i, query.name, [&](Values* to) {
        return query.read(library_.call(), gpus_[i].handle, to);
      });
      add(i, std::move(answer), row_ns, values);
    }
  }
}

void Gpus::read_events(std::vector<GpuValue>* values) {
  query_.store(kXidName, std::memory_order_relaxed);
  for (const Xid& xid : events_->take()) {
    ++xids_[{xid.gpu, xid.number}];
    ++xid_counts_[xid.gpu];
    Values happened;
    happened.value(kXidNumber, xid.number);
    happened.count(kXidCount, xid_counts_[xid.gpu]);
    add(xid.gpu, std::move(happened), steady_ns(), values);
  }
}

std::vector<GpuValue> Gpus::read(uint64_t now_ns) {
  std::vector<GpuValue> values;
  for (uint32_t pace = 0; pace < kPaceCount; ++pace) {
    if (now_ns < due_ns_[pace] || !has_pace(static_cast<Pace>(pace))) continue;
    const uint64_t begin_ns = clock_ns_();
    read_pace(static_cast<Pace>(pace), &values);
    const uint64_t cost_ns = clock_ns_() - begin_ns;
    const uint64_t period_ns = kPeriodMs[pace] * kNsPerMs;
    // One answer that came late is an accident, two are how this driver is.
    const uint64_t usual_ns = std::min(cost_ns, std::exchange(cost_ns_[pace], cost_ns));
    // GPM's looks have to be apart, also those of a GPU that was slow to answer and is no more.
    const uint64_t from_ns = now_ns + (static_cast<Pace>(pace) == Pace::kGpm ? cost_ns : 0);
    due_ns_[pace] = from_ns + std::max(period_ns, rest_ns(usual_ns));
    const bool is_slow = rest_ns(usual_ns) > period_ns;
    if (is_slow && slow_.find(kPaceNames[pace]) == std::string::npos) {
      slow_ +=
          (slow_.empty() ? "" : "; ") + std::string(kPaceNames[pace]) +
          " asked less often, the driver took " + time_text(usual_ns) + " at a time" +
          (rest_ns(usual_ns) > usual_ns * kRestPerCost ? " (a larger --budget: more often)" : "");
    }
  }
  read_events(&values);
  return values;
}

void Gpus::hurry() {
  // GPM's looks have to be apart.
  for (const Pace pace : {Pace::kOften, Pace::kPcie, Pace::kSeldom}) {
    due_ns_[static_cast<uint32_t>(pace)] = 0;
  }
}

uint64_t Gpus::next_ns() const {
  uint64_t next = UINT64_MAX;
  for (uint32_t pace = 0; pace < kPaceCount; ++pace) {
    if (has_pace(static_cast<Pace>(pace))) next = std::min(next, due_ns_[pace]);
  }
  return next;
}

node::StateText Gpus::state() const {
  node::StateText state = found_;
  if (state.state == AON_STATE_OFF) return state;
  for (const auto& [key, count] : xids_) {
    state.add(AON_STATE_ON,
              labels_[key.first] + ": " + xid_text(key.second) +
                  (count > 1 ? ", " + std::to_string(count) + " times" : ""),
              "dmesg | grep Xid; docs.nvidia.com/deploy/xid-errors");
  }
  faults_.tell(labels_, &state);
  for (uint32_t i = 0; events_ != nullptr && i < events_->ends().size(); ++i) {
    const Events::End& end = events_->ends()[i];
    state.add(AON_STATE_DEGRADED, labels_[end.gpu] + ": no more Xid events: " + code_text(end.code),
              code_remedy(end.code));
  }
  if (!slow_.empty()) state.add(AON_STATE_ON, slow_, "");
  return state;
}

void Gpus::finish() {
  gpm_.clear();
  events_.reset();
  library_.shutdown();
}

}  // namespace aon::nvml
