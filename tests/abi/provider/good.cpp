// The same header from C++20, without the GNU extensions.
#include <aon/provider.h>

struct aon_provider {
  int calls = 0;
};

namespace {

aon_provider self_object;

aon_status start(aon_core*, const aon_core_api* api, aon_host host, const char*,
                 aon_provider** self) {
  if (api->size < AON_CORE_SIZE_V1 || host != AON_HOST_NODE) return AON_INVALID;
  *self = &self_object;
  return AON_OK;
}

}  // namespace

const aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE | AON_HOST_PROCESS,
    .tick_period_ms = 0,
    .name = "good_cpp",
    .description = "a test",
    .start = start,
    .flush = nullptr,
    .stop = [](aon_provider*) {},
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick = nullptr,
    .message = nullptr,
};
