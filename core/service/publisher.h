/// The page as the service fills it: runs node providers and puts what they say into it.
/// Owner: the service.   Thread: one.   Cost: theirs; nothing while nobody reads.
/// Errors: what does not fit (kMaxShared, kMaxSeries) is logged and left out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/clock/snapshot.h"
#include "core/provider/loader.h"
#include "core/service/page.h"

namespace aon::service {

class Publisher {
 public:
  /// Makes and seals the page.   Errors: kIo.
  static Result<std::unique_ptr<Publisher>> create();
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Loads and starts a provider. One that has nothing to give tells why in the page.
  void add(provider::Provider provider);
  /// Calls tick() of those whose period is over; ms until the next one, -1: never.
  int tick(uint64_t now_ns);
  /// Every provider reads now: before somebody takes its counts as a beginning.
  void tick_all();
  /// A thread died in our code, and its process with it.
  void add_crash(int32_t tid, uint32_t place);
  void set_has_log(bool has_log);

  int page_fd() const { return fd_.get(); }
  const Page& page() const { return *page_; }

 private:
  struct Hosted;
  struct Table;
  friend struct Table;

  Publisher(UniqueFd fd, Page* page);
  void note_failure(const Hosted& hosted);

  UniqueFd fd_;
  Page* page_;
  clock::TickSource tick_source_;
  std::vector<std::unique_ptr<Hosted>> hosted_;
};

}  // namespace aon::service
