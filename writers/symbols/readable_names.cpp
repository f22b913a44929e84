#include "writers/symbols/readable_names.h"

#include <sys/time.h>

#include <cstdint>
#include <string_view>

#include "core/base/file.h"
#include "writers/symbols/helper.h"
#include "writers/symbols/readable_name.h"

namespace aon::symbols {
namespace {

/// Each use of a part of the name at most doubles the result: 8 make 1 MiB of 4 KiB.
constexpr size_t kHarmlessUses = 8;
constexpr HelperLimits kLimits{uint64_t{64} << 20, 60};
/// Of the processor's time, for one name; out of memory the demangler goes on.
constexpr itimerval kNameTime{{0, 0}, {0, 200'000}};
/// Helpers that may end early; then the names behind stay as they are.
constexpr int kMaxHelpers = 8;

/// How often `name` may use what stands in it before: S_, S0_, T_, T0_, and packs (Dp, sp).
size_t use_count(std::string_view name) {
  size_t count = 0;
  if (name.substr(0, 2) != "_Z") return count;  // nobody's but its author's
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    if (name.substr(i, 2) == "Dp" || name.substr(i, 2) == "sp") return kHarmlessUses + 1;
    if (name[i] != 'S' && name[i] != 'T') continue;
    const size_t end = name.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != std::string_view::npos && name[end] == '_') ++count;
  }
  return count;
}

/// Writes the readable names, each behind its length. One that takes too long ends the helper.
void tell_names(std::span<const std::string> names, std::span<const size_t> indices, int pipe) {
  for (const size_t index : indices) {
    setitimer(ITIMER_VIRTUAL, &kNameTime, nullptr);
    const std::string name = readable_name(names[index]);
    const auto bytes = static_cast<uint32_t>(name.size());
    if (!write_all(pipe, &bytes, sizeof(bytes)) || !write_all(pipe, name.data(), bytes)) return;
  }
}

bool read_all(Helper* helper, void* buffer, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t got = helper->read(static_cast<char*>(buffer) + done, bytes - done);
    if (got == 0) return false;
    done += got;
  }
  return true;
}

/// Takes what a helper tells of `indices`; returns how many it told.
size_t take_names(Helper* helper, std::span<const size_t> indices,
                  std::vector<std::string>* readable) {
  size_t count = 0;
  for (const size_t index : indices) {
    uint32_t bytes = 0;
    if (!read_all(helper, &bytes, sizeof(bytes)) || bytes > kMaxNameBytes) break;
    std::string name(bytes, 0);
    if (!read_all(helper, name.data(), bytes)) break;
    (*readable)[index] = std::move(name);
    ++count;
  }
  return count;
}

}  // namespace

bool is_read_alike(const std::string& name) { return use_count(name) <= kHarmlessUses; }

std::vector<std::string> readable_names(std::span<const std::string> names) {
  std::vector<std::string> readable(names.begin(), names.end());
  std::vector<size_t> doubtful;
  for (size_t i = 0; i < names.size(); ++i) {
    if (is_read_alike(names[i])) {
      readable[i] = readable_name(names[i]);
    } else {
      doubtful.push_back(i);
    }
  }
  std::span<const size_t> left = doubtful;
  for (int tries = 0; !left.empty() && tries < kMaxHelpers; ++tries) {
    const auto work = [&](int pipe) { tell_names(names, left, pipe); };
    Result<Helper> helper = Helper::start(kLimits, work);
    if (!helper) break;
    left = left.subspan(take_names(&*helper, left, &readable));
    if (!left.empty()) left = left.subspan(1);  // the one it ended at
  }
  return readable;
}

}  // namespace aon::symbols
