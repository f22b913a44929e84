// A client of CUPTI that does nothing with what it gets, for comparison: what the made-up CUPTI
// costs itself. libnull-client.so, loaded through CUDA_INJECTION64_PATH.
#include <dlfcn.h>
#include <stdlib.h>

#include "plugins/cupti/interface.h"

namespace {

using namespace aon::cupti;

constexpr size_t kBytes = 1u << 20;
constexpr uint32_t kLaunchKernel = 307;

void request(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(calloc(1, kBytes));
  *bytes = kBytes;
  *max_records = 0;
}
void complete(void*, uint32_t, uint8_t* buffer, size_t, size_t) { free(buffer); }

template <class Function>
Function find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) abort();
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
extern "C" int InitializeInjection() {
  void* library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) abort();
  Subscriber subscriber = nullptr;
  find<Code (*)(Subscriber*, Callback, void*)>(library, "cuptiSubscribe")(&subscriber, nullptr,
                                                                          nullptr);
  find<Code (*)(RequestBuffer, CompleteBuffer)>(library, "cuptiActivityRegisterCallbacks")(
      request, complete);
  find<Code (*)(Kind)>(library, "cuptiActivityEnable")(Kind::kConcurrentKernel);
  find<Code (*)(uint32_t, uint8_t)>(library, "cuptiActivityEnableDriverApi")(kLaunchKernel, 1);
  return 1;
}
