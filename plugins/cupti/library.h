/// The libcupti of this process: found, never linked, and its functions behind a table.
///
/// aon/cupti_library.h has the search.
///
/// `Backend` is what a generation of CUPTI's interface for subscribers does:
///
/// | backend | versions                   | clients of a process                    |
/// |---------|----------------------------|-----------------------------------------|
/// | v1      | all                        | one                                     |
/// | v2      | 13.3 on, driver r610 on    | several, each its own kinds and buffers |
///
/// A client that uses the one gets error 39 where another uses the other.
/// Thread: load() once, then any.   Cost: one dlopen.
#pragma once

#include <aon/cupti_library.h>

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
  // All of them, or the version is one of v1.
  Code (*get_timestamp_v2)(Subscriber subscriber, uint64_t* ns);
  Code (*set_attribute_v2)(Subscriber subscriber, Attribute attribute, size_t* value_bytes,
                           void* value);
  Code (*register_callbacks_v2)(Subscriber subscriber, RequestBufferV2 request,
                                CompleteBufferV2 complete);
  Code (*enable_v2)(Subscriber subscriber, Kind kind, void* config);
  Code (*disable_v2)(Subscriber subscriber, Kind kind, void* config);
  Code (*enable_driver_call_v2)(Subscriber subscriber, uint32_t function, uint8_t enable);
  Code (*enable_runtime_call_v2)(Subscriber subscriber, uint32_t function, uint8_t enable);
  Code (*get_next_record_v2)(Subscriber subscriber, uint8_t* buffer, size_t valid_bytes,
                             uint8_t** record);
  Code (*get_dropped_v2)(Subscriber subscriber, void* context, uint32_t stream, size_t* count);
};

/// True where all functions of v2 are there.
bool has_v2(const Functions& cupti);

/// What CUPTI calls for buffers, in the words of both generations.
struct BufferCallbacks {
  RequestBuffer request;
  CompleteBuffer complete;
  RequestBufferV2 request_v2;
  CompleteBufferV2 complete_v2;
};

struct Setup {
  bool has_zeroed_buffers;  ///< ours are zero: CUPTI need not clear them
  bool has_graph_nodes;     ///< each kernel of a graph, not the graph as one
  bool has_pinned_buffers;  ///< CUPTI's own, that the device writes: memory of the host
};

struct Backend;

/// One subscription.
struct Client {
  Functions cupti;
  const Backend* backend;
  Subscriber subscriber;
};

/// How to be a subscriber. All but subscribe() only while one.
struct Backend {
  const char* name;
  /// next_record() reads nothing but the record that it steps from: what is before it may be
  /// cleared. Of v1 that is tested with NVIDIA's library, of v2 it is not known.
  bool looks_at_one_record;
  /// `owner` gets the name of who is one already, where CUPTI tells.
  Code (*subscribe)(Client* client, Callback callback, char* owner, size_t owner_bytes);
  void (*set_up)(const Client& client, const Setup& setup);
  /// What set_up() has set and the next client would find set.
  void (*reset)(const Client& client);
  Code (*register_buffers)(const Client& client, const BufferCallbacks& callbacks);
  Code (*enable)(const Client& client, Kind kind);
  Code (*disable)(const Client& client, Kind kind);
  /// kNotSupported where calls cannot be chosen.
  Code (*set_driver_call)(const Client& client, uint32_t function, uint8_t enable);
  Code (*set_runtime_call)(const Client& client, uint32_t function, uint8_t enable);
  Code (*next_record)(const Client& client, uint8_t* buffer, size_t valid_bytes, uint8_t** record);
  Code (*take_dropped)(const Client& client, size_t* count);
  Code (*read_time)(const Client& client, uint64_t* ns);
};

extern const Backend kBackendV1;
extern const Backend kBackendV2;

/// Finds libcupti and fills `functions`. Null, or what is missing: text that lives for ever.
const char* load(Functions* functions, CuptiLibrary* library);

}  // namespace aon::cupti
