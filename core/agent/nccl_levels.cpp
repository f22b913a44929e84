#include "core/agent/nccl_levels.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr std::chrono::seconds kLookPeriod{2};

uint32_t load(const std::atomic<uint32_t>& word) {
  return word.load(std::memory_order_relaxed) & ~kModePaused;
}

/// The pause bit is the process's.
void store(std::atomic<uint32_t>& word, uint32_t value) {
  uint32_t known = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(known, value | (known & kModePaused),
                                     std::memory_order_relaxed)) {
  }
}

}  // namespace

/// What the looking thread and the other one have in common.
struct NcclLevels::Watch {
  explicit Watch(std::string dir) : file(std::move(dir)) {}
  void run();

  cluster::NcclWishFile file;  ///< owner: the looking thread
  std::mutex m;
  std::condition_variable stopped;
  bool is_stopping = false;               ///< guarded by m
  std::optional<cluster::NcclWish> wish;  ///< guarded by m
};

void NcclLevels::Watch::run() {
  std::unique_lock lock(m);
  while (!is_stopping) {
    lock.unlock();
    const auto found = file.look();
    if (!found) AON_LOG_WARNING("%s", found.error().message.c_str());
    lock.lock();
    if (found) wish = *found;
    stopped.wait_for(lock, kLookPeriod, [this] { return is_stopping; });
  }
}

NcclLevels::NcclLevels(std::string job_folder, ModeTable* modes, Inbox* inbox,
                       std::function<void(uint32_t, uint32_t)> forget)
    : job_folder_(std::move(job_folder)),
      modes_(modes),
      inbox_(inbox),
      forget_(std::move(forget)) {}

NcclLevels::~NcclLevels() {
  if (watch_ == nullptr) return;
  const std::lock_guard lock(watch_->m);
  watch_->is_stopping = true;
  watch_->stopped.notify_one();
}

std::vector<NcclLevels::Standing> NcclLevels::read_standings() const {
  std::vector<Standing> found;
  modes_->for_each([&](uint32_t process, const std::atomic<uint32_t>* modes) {
    NcclLimits limits;
    if (!read_nccl_limits(load(modes[kNcclLimitsSite]), &limits)) return;
    const uint32_t mode = load(modes[limits.site()]);
    const NcclLevel level = mode == kModeUndefined
                                ? limits.launch
                                : limits.clamp(nccl_level_of(mode, limits.keeps_channels()));
    if (load(modes[kNcclUncountedSite]) != kModeUndefined) limits = limits.counts_differ(level);
    found.push_back({process, limits, load(modes[kNcclAskedSite]), level});
  });
  return found;
}

void NcclLevels::read_wish() {
  if (watch_ == nullptr) {
    auto watch = std::make_shared<Watch>(job_folder_);
    try {
      std::thread([watch] { watch->run(); }).detach();
    } catch (const std::system_error&) {
      return;  // ulimit -u, which the ranks fill: the next second tries again
    }
    watch_ = std::move(watch);
  }
  const std::lock_guard lock(watch_->m);
  wish_ = watch_->wish;
}

void NcclLevels::second(clock::TickSource ticks) {
  const std::vector<Standing> standings = read_standings();
  std::set<uint32_t> told;
  if (!standings.empty()) read_wish();
  for (const Standing& standing : standings) {
    told.insert(standing.process);
    if (wish_ && standing.stamp != wish_->stamp) {
      tell(standing, give(standing), ticks);
    } else if (told_.count(standing.process) == 0) {
      tell(standing, {standing.level, standing.level, NcclLevel::kOff, NcclLimit::kNone}, ticks);
    }
  }
  told_.swap(told);
}

/// What is possible of the wish.
NcclAnswer NcclLevels::give(const Standing& standing) {
  const NcclLimits& limits = standing.limits;
  NcclAnswer answer;
  answer.before = standing.level;
  answer.asked = wish_->level;
  answer.level = limits.clamp(wish_->level);
  if (answer.level != answer.asked) answer.reason = limits.reason;
  modes_->for_each([&](uint32_t process, std::atomic<uint32_t>* modes) {
    if (process != standing.process) return;
    // A process that can be given one level has no site for it.
    if (limits.lowest != limits.highest)
      store(modes[limits.site()], nccl_mode_of(answer.level, limits.keeps_channels()));
    store(modes[kNcclAskedSite], wish_->stamp);
  });
  forget_(standing.process, limits.site());
  return answer;
}

void NcclLevels::tell(const Standing& standing, const NcclAnswer& answer, clock::TickSource ticks) {
  BudgetDefinition definition{};
  definition.process = standing.process;
  definition.site = kNcclAskedSite;
  definition.old_mode = answer.word();
  definition.new_mode = answer.asked == NcclLevel::kOff ? standing.stamp : wish_->stamp;
  definition.ticks = clock::now_ticks(ticks);
  inbox_->define(standing.process, DefinitionType::kBudget, definition);
}

}  // namespace aon::agent
