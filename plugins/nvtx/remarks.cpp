#include "nvtx/remarks.h"

#include <aon/annotation.h>
#include <stdio.h>

#include <atomic>

#include "nvtx/names.h"

namespace aon::nvtx {
namespace {

struct Remark {
  const char* reason;
  const char* remedy;
};
enum RemarkId : uint32_t { kVersion = 0, kExtension, kSchemas };
constexpr Remark kRemarks[] = {
    {"a library contains an NVTX without the tables of version 3: its ranges are not recorded",
     "build it with NVTX 3"},
    {"a library contains an NVTX whose payload extension is not known: ranges that are begun or "
     "ended by its functions are not, or not wholly, recorded",
     "build it with NVTX 3.2"},
    {"schemas of payloads beyond 1024, or that differ and have one id in a domain, are not read: "
     "messages, categories and numbers that their payloads alone tell are missing",
     "register each schema once, before the work"},
};

std::atomic<uint32_t> g_told;  ///< a bit each

class Text {
 public:
  /// Joins what was told by `part`, and ends it.
  void add(uint32_t told, const char* Remark::*part) {
    const char* separator = "";
    for (uint32_t i = 0; i < sizeof kRemarks / sizeof kRemarks[0]; ++i) {
      if ((told & 1u << i) == 0) continue;
      used_ += static_cast<uint32_t>(
          snprintf(text_ + used_, sizeof text_ - used_, "%s%s", separator, kRemarks[i].*part));
      separator = "; ";
    }
    text_[used_++] = '\0';
  }
  const char* data() const { return text_; }
  uint32_t bytes() const { return used_; }

 private:
  char text_[1024] = "nvtx";  // all of them have room
  uint32_t used_ = sizeof "nvtx";
};

/// Each once; a definition takes the place of the one before it, so it has all that was told.
void tell_degraded(RemarkId id) {
  const uint32_t bit = 1u << id;
  const uint32_t before = g_told.fetch_or(bit, std::memory_order_relaxed);
  if ((before & bit) != 0) return;
  // The first record of NVTX says that all is well: not after this.
  annotation_writer(find_message(nullptr, 0, "(no open NVTX range)"), RecordKind::kMark);
  Text text;
  text.add(before | bit, &Remark::reason);
  text.add(before | bit, &Remark::remedy);
  ProviderDefinition provider = {};
  provider.state = ProviderState::kDegraded;
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider,
             text.data(), text.bytes());
}

}  // namespace

void tell_unknown_version() { tell_degraded(kVersion); }
void tell_unknown_extension() { tell_degraded(kExtension); }
void tell_unread_schemas() { tell_degraded(kSchemas); }

}  // namespace aon::nvtx
