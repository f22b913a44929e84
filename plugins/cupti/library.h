/// The libcupti of this process: found, never linked, and its functions behind a table.
///
/// Two libcupti in one process see half of the work each, so the one that is loaded already comes
/// first: libcupti.so.13, .so.12; then the same by name, as the loader finds them; then the path in
/// AON_CUPTI_LIB. `Backend` is what a generation of CUPTI's interface for subscribers does; v1 is
/// that of all versions, of one subscriber per process.
/// Thread: load() once, then any.   Cost: one dlopen.
#pragma once

#include "cupti/interface.h"

namespace aon::cupti {

struct Functions {
  Code (*get_version)(uint32_t* version);
  Code (*get_timestamp)(uint64_t* ns);
  Code (*get_result_string)(Code code, const char** text);
  Code (*subscribe)(Subscriber* subscriber, Callback callback, void* user);
  Code (*unsubscribe)(Subscriber subscriber);
  Code (*enable_callback)(uint32_t enable, Subscriber subscriber, int32_t domain, uint32_t id);
  Code (*register_callbacks)(RequestBuffer request, CompleteBuffer complete);
  Code (*enable)(Kind kind);
  Code (*disable)(Kind kind);
  Code (*flush_all)(uint32_t flag);
  Code (*get_next_record)(uint8_t* buffer, size_t valid_bytes, uint8_t** record);
  Code (*get_dropped)(void* context, uint32_t stream, size_t* count);
  // Null where the version has no such function.
  Code (*subscribe_v2)(Subscriber* subscriber, Callback callback, void* user,
                       SubscriberParams* params);
  Code (*set_attribute)(Attribute attribute, size_t* value_bytes, void* value);
  Code (*set_thread_id_type)(int32_t type);
  Code (*enable_driver_call)(uint32_t function, uint8_t enable);
  Code (*enable_runtime_call)(uint32_t function, uint8_t enable);
  Code (*enable_all_sync_records)(uint8_t enable);
  Code (*get_callback_name)(int32_t domain, uint32_t id, const char** name);
};

/// How to be a subscriber. `owner` gets the name of who is one already, where CUPTI tells.
struct Backend {
  const char* name;
  Code (*subscribe)(const Functions& cupti, Subscriber* subscriber, Callback callback, char* owner,
                    size_t owner_bytes);
  Code (*unsubscribe)(const Functions& cupti, Subscriber subscriber);
  Code (*register_buffers)(const Functions& cupti, RequestBuffer request, CompleteBuffer complete);
  Code (*enable)(const Functions& cupti, Kind kind);
  Code (*disable)(const Functions& cupti, Kind kind);
  Code (*flush)(const Functions& cupti, uint32_t flag);
  Code (*take_dropped)(const Functions& cupti, size_t* count);
};

extern const Backend kBackendV1;

/// Finds libcupti and fills `functions`. Null, or what is missing: text that lives for ever.
const char* load(Functions* functions);

}  // namespace aon::cupti
