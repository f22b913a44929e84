#include "nvtx/remarks.h"

#include <aon/annotation.h>

#include "nvtx/names.h"

namespace aon::nvtx {
namespace {

/// `text` is the provider's name, the reason and the remedy.
template <uint32_t kBytes>
void tell_degraded(const char (&text)[kBytes]) {
  // The first record of NVTX says that all is well: not after this.
  annotation_writer(find_message(nullptr, 0, "(no open NVTX range)"), RecordKind::kMark);
  ProviderDefinition provider = {};
  provider.state = ProviderState::kDegraded;
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             kBytes);
}

}  // namespace

void tell_unknown_version() {
  tell_degraded(
      "nvtx\0a library contains an NVTX without the tables of version 3: its ranges are not "
      "recorded\0build it with NVTX 3");
}

void tell_unknown_extension() {
  tell_degraded(
      "nvtx\0a library contains an NVTX whose payload extension is not known: ranges that are "
      "begun or ended by its functions are not, or not wholly, recorded\0build it with NVTX 3.2");
}

}  // namespace aon::nvtx
