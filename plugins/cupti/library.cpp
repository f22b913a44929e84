#include "cupti/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

namespace aon::cupti {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

void* find_library() {
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  }
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  const char* path = getenv("AON_CUPTI_LIB");
  return path != nullptr && path[0] == '/' ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : nullptr;
}

/// False: not there.
template <class Function>
bool resolve(void* library, const char* name, Function* function) {
  void* symbol = dlsym(library, name);
  static_assert(sizeof symbol == sizeof *function);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

bool resolve_needed(void* library, Functions* f) {
  return resolve(library, "cuptiGetVersion", &f->get_version) &&
         resolve(library, "cuptiGetTimestamp", &f->get_timestamp) &&
         resolve(library, "cuptiGetResultString", &f->get_result_string) &&
         resolve(library, "cuptiSubscribe", &f->subscribe) &&
         resolve(library, "cuptiUnsubscribe", &f->unsubscribe) &&
         resolve(library, "cuptiEnableCallback", &f->enable_callback) &&
         resolve(library, "cuptiActivityRegisterCallbacks", &f->register_callbacks) &&
         resolve(library, "cuptiActivityEnable", &f->enable) &&
         resolve(library, "cuptiActivityDisable", &f->disable) &&
         resolve(library, "cuptiActivityFlushAll", &f->flush_all) &&
         resolve(library, "cuptiActivityGetNextRecord", &f->get_next_record) &&
         resolve(library, "cuptiActivityGetNumDroppedRecords", &f->get_dropped);
}

void resolve_others(void* library, Functions* f) {
  resolve(library, "cuptiSubscribe_v2", &f->subscribe_v2);
  resolve(library, "cuptiActivitySetAttribute", &f->set_attribute);
  resolve(library, "cuptiSetThreadIdType", &f->set_thread_id_type);
  resolve(library, "cuptiActivityEnableDriverApi", &f->enable_driver_call);
  resolve(library, "cuptiActivityEnableRuntimeApi", &f->enable_runtime_call);
  resolve(library, "cuptiActivityEnableAllSyncRecords", &f->enable_all_sync_records);
  resolve(library, "cuptiGetCallbackName", &f->get_callback_name);
}

Code subscribe_v1(const Functions& cupti, Subscriber* subscriber, Callback callback, char* owner,
                  size_t owner_bytes) {
  owner[0] = '\0';
  if (cupti.subscribe_v2 == nullptr) return cupti.subscribe(subscriber, callback, nullptr);
  SubscriberParams params = {sizeof params, "AON", owner, owner_bytes};
  const Code code = cupti.subscribe_v2(subscriber, callback, nullptr, &params);
  owner[owner_bytes - 1] = '\0';
  return code;
}
Code unsubscribe_v1(const Functions& cupti, Subscriber subscriber) {
  return cupti.unsubscribe(subscriber);
}
Code register_v1(const Functions& cupti, RequestBuffer request, CompleteBuffer complete) {
  return cupti.register_callbacks(request, complete);
}
Code enable_v1(const Functions& cupti, Kind kind) { return cupti.enable(kind); }
Code disable_v1(const Functions& cupti, Kind kind) { return cupti.disable(kind); }
Code flush_v1(const Functions& cupti, uint32_t flag) { return cupti.flush_all(flag); }
Code take_dropped_v1(const Functions& cupti, size_t* count) {
  return cupti.get_dropped(nullptr, 0, count);
}

}  // namespace

const Backend kBackendV1 = {"v1",      subscribe_v1, unsubscribe_v1, register_v1,
                            enable_v1, disable_v1,   flush_v1,       take_dropped_v1};

const char* load(Functions* functions) {
  *functions = {};
  void* library = find_library();
  if (library == nullptr) return "no libcupti.so.13 or libcupti.so.12 was found";
  if (!resolve_needed(library, functions)) return "the libcupti that was found lacks functions";
  resolve_others(library, functions);
  return nullptr;
}

}  // namespace aon::cupti
