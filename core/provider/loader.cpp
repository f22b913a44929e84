#include "core/provider/loader.h"

#include <dlfcn.h>

#include <cstddef>
#include <exception>

#include "core/provider/check.h"

namespace aon::provider {
namespace {

Code code_of(aon_status status) {
  switch (status) {
    case AON_UNAVAILABLE:
      return Code::kUnavailable;
    case AON_BUSY:
      return Code::kBusy;
    case AON_INVALID:
      return Code::kInvalid;
    default:
      return Code::kBug;
  }
}

const char* text_of(aon_status status) {
  switch (status) {
    case AON_UNAVAILABLE:
      return "not available";
    case AON_BUSY:
      return "busy: somebody else holds what it needs";
    case AON_INVALID:
      return "invalid configuration";
    default:
      return "failed to start";
  }
}

}  // namespace

Result<Provider> Provider::load(const std::filesystem::path& path, aon_host host,
                                const std::filesystem::path& own_folder) {
  Message message;
  if (!check_file(path.c_str(), own_folder.c_str(), &message)) {
    std::error_code ignored;  // a folder that its user may not enter, as below /root
    const bool exists = std::filesystem::exists(path, ignored);
    return Error{exists ? Code::kInvalid : Code::kNotFound,
                 std::string("provider not loaded: ") + message.text};
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return Error{Code::kInvalid, std::string("provider not loaded: ") + dlerror()};
  }
  return from_table(static_cast<const aon_provider_api*>(dlsym(handle, "aon_provider_v1")), host,
                    path);
}

Result<Provider> Provider::from_table(const aon_provider_api* table, aon_host host,
                                      const std::filesystem::path& path) {
  Message message;
  if (!check_table(table, host, &message)) {
    return Error{Code::kInvalid, "provider " + path.string() + " refused: " + message.text};
  }
  return Provider(table, host, path);
}

template <class Call>
void Provider::guarded(const char* function, Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    state_ = State::kFailed;
    failure_ = std::string(function) + " threw: " + e.what();
  } catch (...) {
    state_ = State::kFailed;
    failure_ = std::string(function) + " threw an exception";
  }
}

Status Provider::start(aon_core* core, const aon_core_api& core_table, const std::string& config) {
  if (state_ != State::kLoaded) {
    return Error{Code::kBug, std::string("provider ") + name() + " was started before"};
  }
  aon_status status = AON_FAILED;
  guarded("start",
          [&] { status = table_->start(core, &core_table, host_, config.c_str(), &self_); });
  if (state_ == State::kFailed) {
    return Error{Code::kBug, std::string("provider ") + name() + ": " + failure_};
  }
  if (status != AON_OK) {
    state_ = State::kOff;
    self_ = nullptr;
    return Error{code_of(status), std::string("provider ") + name() + ": " + text_of(status)};
  }
  state_ = State::kRunning;
  return {};
}

void Provider::flush() {
  if (state_ != State::kRunning || table_->flush == nullptr) return;
  guarded("flush", [&] { table_->flush(self_); });
}

void Provider::stop() {
  if (state_ != State::kRunning) return;
  guarded("stop", [&] { table_->stop(self_); });
  if (state_ != State::kFailed) state_ = State::kStopped;
}

void Provider::process_started(uint32_t process, int32_t pid, int32_t rank) {
  if (state_ != State::kRunning || table_->process_started == nullptr) return;
  guarded("process_started", [&] { table_->process_started(self_, process, pid, rank); });
}

void Provider::process_ended(uint32_t process) {
  if (state_ != State::kRunning || table_->process_ended == nullptr) return;
  guarded("process_ended", [&] { table_->process_ended(self_, process); });
}

void Provider::tick(uint64_t now_ticks) {
  if (state_ != State::kRunning || table_->tick == nullptr) return;
  guarded("tick", [&] { table_->tick(self_, now_ticks); });
}

bool Provider::throttle(uint32_t divisor) {
  constexpr uint32_t kEnd = offsetof(aon_provider_api, throttle) + sizeof(table_->throttle);
  if (state_ != State::kRunning || table_->size < kEnd || table_->throttle == nullptr) return false;
  guarded("throttle", [&] { table_->throttle(self_, divisor); });
  return true;
}

std::filesystem::path provider_path(const std::filesystem::path& own_folder,
                                    const std::string& name) {
  return own_folder / ("libaon-provider-" + name + ".so");
}

}  // namespace aon::provider
