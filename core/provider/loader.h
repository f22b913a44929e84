/// Loads providers and calls them safely. A Provider is one loaded shared object: checked
/// (check.h), dlopen()ed `RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE`, never unloaded. Every call into
/// it goes through one helper that reads no further than the provider's table, skips null functions
/// and turns a C++ exception into "failed": the provider is then left alone for good.
///
///     kLoaded --start() ok--> kRunning --stop()--> kStopped
///        |                       |
///        +--start() not ok--> kOff       exception anywhere --> kFailed
///
/// Owner: the host (agent).   Thread: one at a time.   Cost: an indirect call.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/result.h"

namespace aon::provider {

class Provider {
 public:
  enum class State { kLoaded, kRunning, kOff, kStopped, kFailed };

  /// Loads the provider at the absolute `path`; `own_folder` is the installation's provider folder
  /// (files in it are trusted as installed).
  /// Errors: kInvalid, with the rule that was broken; kNotFound.
  static Result<Provider> load(const std::filesystem::path& path, aon_host host,
                               const std::filesystem::path& own_folder);

  /// Wraps a table that is part of the program (tests).   Errors: kInvalid.
  static Result<Provider> from_table(const aon_provider_api* table, aon_host host,
                                     const std::filesystem::path& path);

  const char* name() const { return table_->name; }
  const char* description() const { return table_->description; }
  uint32_t tick_period_ms() const { return table_->tick_period_ms; }
  const std::filesystem::path& path() const { return path_; }
  State state() const { return state_; }
  /// Why it is kFailed; empty otherwise.
  const std::string& failure() const { return failure_; }

  /// Errors: kUnavailable (normal: the provider has told its core why), kBusy, kInvalid, kBug.
  Status start(aon_core* core, const aon_core_api& core_table, const std::string& config);
  void flush();
  void stop();  ///< no effect unless running

  void process_started(uint32_t process, int32_t pid, int32_t rank);
  void process_ended(uint32_t process);
  void tick(uint64_t now_ticks);
  /// False: it has nothing to throttle.
  bool throttle(uint32_t divisor);

 private:
  Provider(const aon_provider_api* table, aon_host host, std::filesystem::path path)
      : table_(table), host_(host), path_(std::move(path)) {}

  template <class Call>
  void guarded(const char* function, Call call);

  const aon_provider_api* table_;
  aon_host host_;
  std::filesystem::path path_;
  State state_ = State::kLoaded;
  std::string failure_;
  aon_provider* self_ = nullptr;
};

/// Path of provider `name` in `own_folder`: libaon-provider-NAME.so.
std::filesystem::path provider_path(const std::filesystem::path& own_folder,
                                    const std::string& name);

}  // namespace aon::provider
