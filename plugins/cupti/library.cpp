#include "cupti/library.h"

#include <dlfcn.h>
#include <string.h>

namespace aon::cupti {
namespace {

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
  resolve(library, "cuptiGetTimestamp_v2", &f->get_timestamp_v2);
  resolve(library, "cuptiActivitySetAttribute_v2", &f->set_attribute_v2);
  resolve(library, "cuptiActivityRegisterCallbacks_v2", &f->register_callbacks_v2);
  resolve(library, "cuptiActivityEnable_v2", &f->enable_v2);
  resolve(library, "cuptiActivityDisable_v2", &f->disable_v2);
  resolve(library, "cuptiActivityEnableDriverApi_v2", &f->enable_driver_call_v2);
  resolve(library, "cuptiActivityEnableRuntimeApi_v2", &f->enable_runtime_call_v2);
  resolve(library, "cuptiActivityGetNextRecord_v2", &f->get_next_record_v2);
  resolve(library, "cuptiActivityGetNumDroppedRecords_v2", &f->get_dropped_v2);
}

}  // namespace

bool has_v2(const Functions& f) {
  return f.subscribe_v2 != nullptr && f.get_timestamp_v2 != nullptr &&
         f.set_attribute_v2 != nullptr && f.register_callbacks_v2 != nullptr &&
         f.enable_v2 != nullptr && f.disable_v2 != nullptr && f.enable_driver_call_v2 != nullptr &&
         f.enable_runtime_call_v2 != nullptr && f.get_next_record_v2 != nullptr &&
         f.get_dropped_v2 != nullptr;
}

const char* load(Functions* functions, CuptiLibrary* library) {
  *functions = {};
  *library = open_cupti();
  if (library->handle == nullptr) return "no libcupti.so.13 or libcupti.so.12 was found";
  if (!resolve_needed(library->handle, functions))
    return "the libcupti that was found lacks functions";
  resolve_others(library->handle, functions);
  return nullptr;
}

}  // namespace aon::cupti
