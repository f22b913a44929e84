// Both generations of CUPTI's interface: what each of them calls, and that it calls nothing of the
// other one.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "plugins/cupti/library.h"
#include "plugins/cupti/quirks.h"

namespace aon::cupti {
namespace {

std::vector<std::string> g_calls;
std::map<std::string, Code> g_codes;
std::map<Attribute, int64_t> g_attributes;
SubscriberParams g_params;
const Subscriber kHandle = reinterpret_cast<Subscriber>(0x77);

Code call(const char* name, Subscriber subscriber = kHandle) {
  EXPECT_EQ(subscriber, kHandle) << name;
  g_calls.emplace_back(name);
  return g_codes[name];
}

Functions functions() {
  Functions f = {};
  f.get_timestamp = [](uint64_t*) { return call("get_timestamp"); };
  f.subscribe = [](Subscriber* s, Callback, void*) {
    *s = kHandle;
    return call("subscribe");
  };
  f.unsubscribe = [](Subscriber s) { return call("unsubscribe", s); };
  f.register_callbacks = [](RequestBuffer, CompleteBuffer) { return call("register"); };
  f.enable = [](Kind) { return call("enable"); };
  f.disable = [](Kind) { return call("disable"); };
  f.get_next_record = [](uint8_t*, size_t, uint8_t**) { return call("next"); };
  f.get_dropped = [](void*, uint32_t, size_t*) { return call("dropped"); };
  f.subscribe_v2 = [](Subscriber* s, Callback, void*, SubscriberParams* params) {
    *s = kHandle;
    g_params = *params;
    if (g_codes["subscribe_v2"] != kSuccess) strncpy(params->old_name, "nsys", 5);
    return call("subscribe_v2");
  };
  f.set_attribute = [](Attribute, size_t*, void*) { return call("attribute"); };
  f.set_thread_id_type = [](int32_t) { return call("thread_ids"); };
  f.enable_driver_call = [](uint32_t, uint8_t) { return call("driver_call"); };
  f.enable_runtime_call = [](uint32_t, uint8_t) { return call("runtime_call"); };
  f.enable_all_sync_records = [](uint8_t) { return call("sync_records"); };
  f.get_timestamp_v2 = [](Subscriber s, uint64_t*) { return call("get_timestamp_v2", s); };
  f.set_attribute_v2 = [](Subscriber s, Attribute attribute, size_t* bytes, void* value) {
    int64_t whole = 0;
    std::memcpy(&whole, value, *bytes);
    g_attributes[attribute] = whole;
    return call("attribute_v2", s);
  };
  f.register_callbacks_v2 = [](Subscriber s, RequestBufferV2, CompleteBufferV2) {
    return call("register_v2", s);
  };
  f.enable_v2 = [](Subscriber s, Kind, void*) { return call("enable_v2", s); };
  f.disable_v2 = [](Subscriber s, Kind, void*) { return call("disable_v2", s); };
  f.enable_driver_call_v2 = [](Subscriber s, uint32_t, uint8_t) {
    return call("driver_call_v2", s);
  };
  f.enable_runtime_call_v2 = [](Subscriber s, uint32_t, uint8_t) {
    return call("runtime_call_v2", s);
  };
  f.get_next_record_v2 = [](Subscriber s, uint8_t*, size_t, uint8_t**) {
    return call("next_v2", s);
  };
  f.get_dropped_v2 = [](Subscriber s, void*, uint32_t, size_t*) { return call("dropped_v2", s); };
  return f;
}

class Backends : public testing::Test {
 protected:
  Backends() {
    g_calls.clear();
    g_codes.clear();
    g_attributes.clear();
    g_params = {};
    client_.cupti = functions();
  }
  Code subscribe(const Backend& backend) {
    client_.backend = &backend;
    return backend.subscribe(&client_, nullptr, owner_, sizeof owner_);
  }
  /// Everything that is done in a session.
  void use_all() {
    const Backend& b = *client_.backend;
    b.set_up(client_, {true, false, false});
    b.register_buffers(client_, {});
    b.enable(client_, Kind::kMemcpy);
    b.set_driver_call(client_, 307, 1);
    b.set_runtime_call(client_, 211, 1);
    uint64_t ns = 0;
    b.read_time(client_, &ns);
    uint8_t* record = nullptr;
    b.next_record(client_, nullptr, 0, &record);
    size_t count = 0;
    b.take_dropped(client_, &count);
    b.disable(client_, Kind::kMemcpy);
  }
  Client client_ = {};
  char owner_[64] = {};
};

TEST_F(Backends, the_first_leaves_nothing_set_for_the_next_client) {
  static std::map<std::string, int64_t> values;
  values.clear();
  client_.cupti.set_attribute = [](Attribute attribute, size_t* bytes, void* value) {
    int64_t whole = 0;
    std::memcpy(&whole, value, *bytes);
    g_attributes[attribute] = whole;
    return kSuccess;
  };
  client_.cupti.set_thread_id_type = [](int32_t type) {
    values["thread ids"] = type;
    return kSuccess;
  };
  client_.cupti.enable_all_sync_records = [](uint8_t enable) {
    values["all waits"] = enable;
    return kSuccess;
  };
  ASSERT_EQ(subscribe(kBackendV1), kSuccess);
  kBackendV1.set_up(client_, {true, false, false});
  EXPECT_EQ(g_attributes[Attribute::kZeroedBuffers], 1);
  EXPECT_EQ(g_attributes[Attribute::kDeviceBuffers], 32) << "as a size_t";
  kBackendV1.reset(client_);
  EXPECT_EQ(g_attributes[Attribute::kZeroedBuffers], 0);
  EXPECT_EQ(values["thread ids"], kDefaultThreadIds);
  EXPECT_EQ(values["all waits"], 1);
}

TEST_F(Backends, the_first_subscribes_by_the_older_call) {
  ASSERT_EQ(subscribe(kBackendV1), kSuccess);
  EXPECT_EQ(g_calls, std::vector<std::string>{"subscribe"});
}

TEST_F(Backends, the_first_asks_who_was_before_alone) {
  g_codes["subscribe"] = g_codes["subscribe_v2"] = kSubscribed;
  EXPECT_EQ(subscribe(kBackendV1), kSubscribed);
  EXPECT_EQ(g_params.struct_bytes, kLoneSubscriberBytes);
  EXPECT_EQ(g_params.allows_others, 0);
}

TEST_F(Backends, the_first_takes_the_place_of_who_left_just_then_by_the_older_call) {
  g_codes["subscribe"] = kSubscribed;
  subscribe(kBackendV1);
  EXPECT_EQ(g_calls,
            (std::vector<std::string>{"subscribe", "subscribe_v2", "unsubscribe", "subscribe"}));
}

TEST_F(Backends, the_second_allows_others) {
  ASSERT_EQ(subscribe(kBackendV2), kSuccess);
  EXPECT_EQ(g_params.struct_bytes, sizeof(SubscriberParams));
  EXPECT_EQ(g_params.allows_others, 1);
}

TEST_F(Backends, none_calls_what_is_of_the_other) {
  ASSERT_EQ(subscribe(kBackendV1), kSuccess);
  g_calls.clear();
  use_all();
  EXPECT_EQ(g_calls,
            (std::vector<std::string>{"attribute", "attribute", "thread_ids", "sync_records",
                                      "register", "enable", "driver_call", "runtime_call",
                                      "get_timestamp", "next", "dropped", "disable"}));
  ASSERT_EQ(subscribe(kBackendV2), kSuccess);
  g_calls.clear();
  use_all();
  for (const std::string& name : g_calls) EXPECT_NE(name.find("_v2"), std::string::npos) << name;
  EXPECT_EQ(g_calls.size(), 13u);
}

TEST_F(Backends, attributes_take_the_place_of_functions) {
  ASSERT_EQ(subscribe(kBackendV2), kSuccess);
  client_.backend->set_up(client_, {true, false, false});
  EXPECT_EQ(g_attributes.at(Attribute::kZeroedBuffers), 1);
  EXPECT_EQ(g_attributes.at(Attribute::kThreadIdType), kSystemThreadIds);
  EXPECT_EQ(g_attributes.at(Attribute::kAllSyncRecords), 0);
  EXPECT_EQ(g_attributes.at(Attribute::kGraphsAsOne), 1);
  EXPECT_EQ(g_attributes.at(Attribute::kDeviceBuffers), 32) << "as a size_t";
  client_.backend->set_up(client_, {true, true, false});
  EXPECT_EQ(g_attributes.at(Attribute::kGraphsAsOne), 0);
}

TEST_F(Backends, a_version_that_crashes_on_buffers_of_the_device_gets_pinned_ones) {
  static std::vector<Attribute> told;
  client_.cupti.set_attribute = [](Attribute attribute, size_t* bytes, void* value) {
    if (attribute == Attribute::kDeviceBuffers) return kSuccess;
    EXPECT_EQ(*bytes, 1u);
    EXPECT_EQ(*static_cast<uint8_t*>(value), 1);
    told.push_back(attribute);
    return kSuccess;
  };
  ASSERT_EQ(subscribe(kBackendV1), kSuccess);
  client_.backend->set_up(client_, {false, false, true});
  EXPECT_EQ(told, std::vector<Attribute>{Attribute::kPinnedBuffers});
  EXPECT_TRUE(quirks_of(130000).crashes_on_device_buffers);
  EXPECT_FALSE(quirks_of(130001).crashes_on_device_buffers);
}

TEST_F(Backends, a_driver_that_cannot_do_it_gets_its_subscription_back) {
  g_codes["get_timestamp_v2"] = kNotSupported;
  EXPECT_EQ(subscribe(kBackendV2), kNotSupported);
  EXPECT_EQ(g_calls.back(), "unsubscribe");
}

TEST_F(Backends, tell_who_is_subscribed) {
  g_codes["subscribe"] = g_codes["subscribe_v2"] = kSubscribed;
  for (const Backend* backend : {&kBackendV1, &kBackendV2}) {
    EXPECT_EQ(subscribe(*backend), kSubscribed);
    EXPECT_STREQ(owner_, "nsys") << backend->name;
  }
}

TEST_F(Backends, a_version_that_lacks_one_function_is_of_the_first) {
  EXPECT_TRUE(has_v2(client_.cupti));
  client_.cupti.enable_runtime_call_v2 = nullptr;
  EXPECT_FALSE(has_v2(client_.cupti));
  EXPECT_FALSE(quirks_of(130001).has_subscribers);
  EXPECT_FALSE(quirks_of(130200).has_subscribers);
  EXPECT_TRUE(quirks_of(130300).has_subscribers);
}

}  // namespace
}  // namespace aon::cupti
