// The two generations of CUPTI's interface for subscribers (library.h).
#include "cupti/library.h"

namespace aon::cupti {
namespace {

constexpr const char* kName = "AON";

/// The newer call only to learn who was first: mixed with the older ones it would be an error.
Code subscribe_v1(Client* client, Callback callback, char* owner, size_t owner_bytes) {
  const Functions& cupti = client->cupti;
  owner[0] = '\0';
  const Code code = cupti.subscribe(&client->subscriber, callback, nullptr);
  if (code != kSubscribed || cupti.subscribe_v2 == nullptr) return code;
  SubscriberParams params = {kLoneSubscriberBytes, kName, owner, owner_bytes, 0, {}};
  const Code newer = cupti.subscribe_v2(&client->subscriber, callback, nullptr, &params);
  owner[owner_bytes - 1] = '\0';
  if (newer != kSuccess) return newer;
  cupti.unsubscribe(client->subscriber);  // the other one has just left
  return cupti.subscribe(&client->subscriber, callback, nullptr);
}

template <class Value>
void set_v1(const Functions& cupti, Attribute attribute, Value value) {
  size_t bytes = sizeof value;
  if (cupti.set_attribute != nullptr) cupti.set_attribute(attribute, &bytes, &value);
}

/// Of 3.2 MB each, which have room for 100 000 pieces of work; CUPTI's own limit is 250. It makes
/// them as it needs them, and they are never given back.
constexpr size_t kMaxDeviceBuffers = 32;

void set_up_v1(const Client& client, const Setup& setup) {
  const Functions& cupti = client.cupti;
  if (setup.has_zeroed_buffers) set_v1(cupti, Attribute::kZeroedBuffers, uint8_t{1});
  if (setup.has_pinned_buffers) set_v1(cupti, Attribute::kPinnedBuffers, uint8_t{1});
  set_v1(cupti, Attribute::kDeviceBuffers, kMaxDeviceBuffers);
  if (cupti.set_thread_id_type != nullptr) cupti.set_thread_id_type(kSystemThreadIds);
  if (cupti.enable_all_sync_records != nullptr) cupti.enable_all_sync_records(0);
}

void reset_v1(const Client& client) {
  const Functions& cupti = client.cupti;
  set_v1(cupti, Attribute::kZeroedBuffers, uint8_t{0});
  if (cupti.set_thread_id_type != nullptr) cupti.set_thread_id_type(kDefaultThreadIds);
  if (cupti.enable_all_sync_records != nullptr) cupti.enable_all_sync_records(1);
}

Code register_v1(const Client& client, const BufferCallbacks& callbacks) {
  return client.cupti.register_callbacks(callbacks.request, callbacks.complete);
}
Code enable_v1(const Client& client, Kind kind) { return client.cupti.enable(kind); }
Code disable_v1(const Client& client, Kind kind) { return client.cupti.disable(kind); }
Code set_driver_call_v1(const Client& client, uint32_t function, uint8_t enable) {
  const auto set = client.cupti.enable_driver_call;
  return set != nullptr ? set(function, enable) : kNotSupported;
}
Code set_runtime_call_v1(const Client& client, uint32_t function, uint8_t enable) {
  const auto set = client.cupti.enable_runtime_call;
  return set != nullptr ? set(function, enable) : kNotSupported;
}
Code next_record_v1(const Client& client, uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  return client.cupti.get_next_record(buffer, valid_bytes, record);
}
Code take_dropped_v1(const Client& client, size_t* count) {
  return client.cupti.get_dropped(nullptr, 0, count);
}
Code read_time_v1(const Client& client, uint64_t* ns) { return client.cupti.get_timestamp(ns); }

/// A driver before r610 takes the subscription and refuses later: its time is asked for at once.
Code subscribe_v2(Client* client, Callback callback, char* owner, size_t owner_bytes) {
  const Functions& cupti = client->cupti;
  owner[0] = '\0';
  SubscriberParams params = {sizeof params, kName, owner, owner_bytes, 1, {}};
  const Code code = cupti.subscribe_v2(&client->subscriber, callback, nullptr, &params);
  owner[owner_bytes - 1] = '\0';
  if (code != kSuccess) return code;
  uint64_t ns = 0;
  const Code works = cupti.get_timestamp_v2(client->subscriber, &ns);
  if (works != kSuccess) cupti.unsubscribe(client->subscriber);
  return works;
}

template <class Value>
void set(const Client& client, Attribute attribute, Value value) {
  size_t bytes = sizeof value;
  client.cupti.set_attribute_v2(client.subscriber, attribute, &bytes, &value);
}

/// Where another subscriber was first, it has decided what graphs are.
void set_up_v2(const Client& client, const Setup& setup) {
  if (setup.has_zeroed_buffers) set(client, Attribute::kZeroedBuffers, uint8_t{1});
  set(client, Attribute::kDeviceBuffers, kMaxDeviceBuffers);
  set(client, Attribute::kThreadIdType, kSystemThreadIds);
  set(client, Attribute::kAllSyncRecords, uint8_t{0});
  set(client, Attribute::kGraphsAsOne, uint8_t{setup.has_graph_nodes ? uint8_t{0} : uint8_t{1}});
}

/// They are the subscriber's own.
void reset_v2(const Client&) {}

Code register_v2(const Client& client, const BufferCallbacks& callbacks) {
  return client.cupti.register_callbacks_v2(client.subscriber, callbacks.request_v2,
                                            callbacks.complete_v2);
}
/// Without a choice of fields a record is as v1 has it.
Code enable_v2(const Client& client, Kind kind) {
  return client.cupti.enable_v2(client.subscriber, kind, nullptr);
}
Code disable_v2(const Client& client, Kind kind) {
  return client.cupti.disable_v2(client.subscriber, kind, nullptr);
}
Code set_driver_call_v2(const Client& client, uint32_t function, uint8_t enable) {
  return client.cupti.enable_driver_call_v2(client.subscriber, function, enable);
}
Code set_runtime_call_v2(const Client& client, uint32_t function, uint8_t enable) {
  return client.cupti.enable_runtime_call_v2(client.subscriber, function, enable);
}
Code next_record_v2(const Client& client, uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  return client.cupti.get_next_record_v2(client.subscriber, buffer, valid_bytes, record);
}
Code take_dropped_v2(const Client& client, size_t* count) {
  return client.cupti.get_dropped_v2(client.subscriber, nullptr, 0, count);
}
Code read_time_v2(const Client& client, uint64_t* ns) {
  return client.cupti.get_timestamp_v2(client.subscriber, ns);
}

}  // namespace

const Backend kBackendV1 = {.name = "v1",
                            .looks_at_one_record = true,
                            .subscribe = subscribe_v1,
                            .set_up = set_up_v1,
                            .reset = reset_v1,
                            .register_buffers = register_v1,
                            .enable = enable_v1,
                            .disable = disable_v1,
                            .set_driver_call = set_driver_call_v1,
                            .set_runtime_call = set_runtime_call_v1,
                            .next_record = next_record_v1,
                            .take_dropped = take_dropped_v1,
                            .read_time = read_time_v1};

const Backend kBackendV2 = {.name = "v2",
                            .looks_at_one_record = false,
                            .subscribe = subscribe_v2,
                            .set_up = set_up_v2,
                            .reset = reset_v2,
                            .register_buffers = register_v2,
                            .enable = enable_v2,
                            .disable = disable_v2,
                            .set_driver_call = set_driver_call_v2,
                            .set_runtime_call = set_runtime_call_v2,
                            .next_record = next_record_v2,
                            .take_dropped = take_dropped_v2,
                            .read_time = read_time_v2};

}  // namespace aon::cupti
