// What NVTX calls: the functions of each module, and the entry that puts them into NVTX's tables.
// Every library that contains NVTX has tables of its own and calls the entry once.
#include <aon/crash.h>
#include <errno.h>
#include <string.h>

#include "nvtx/interface.h"
#include "nvtx/names.h"
#include "nvtx/payload.h"
#include "nvtx/ranges.h"
#include "nvtx/remarks.h"

namespace aon::nvtx {
namespace {

Value value_of(const EventAttributes& event) {
  const uint32_t low = static_cast<uint32_t>(event.payload);
  switch (event.payload_type) {
    case PayloadType::kUint64:
      return {ValueType::kUnsigned, event.payload};
    case PayloadType::kInt64:
      return {ValueType::kSigned, event.payload};
    case PayloadType::kDouble:
      return {ValueType::kReal, event.payload};
    case PayloadType::kUint32:
      return {ValueType::kUnsigned, low};
    case PayloadType::kInt32:
      return {ValueType::kSigned, static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)})};
    case PayloadType::kFloat: {
      float value;
      memcpy(&value, &low, sizeof value);
      return real_value(static_cast<double>(value));
    }
    default:
      return {ValueType::kNone, 0};
  }
}

constexpr EventAttributes kNoAttributes = {};

Seen look_at(const Domain* domain, const EventAttributes* event) {
  if (event == nullptr) event = &kNoAttributes;
  const bool is_whole = event->struct_bytes >= sizeof(EventAttributes);
  if (AON_UNLIKELY(is_whole && event->payload_type == PayloadType::kExtended)) {
    return look_at_payloads(domain, *event, reinterpret_cast<const PayloadData*>(event->payload),
                            event->payload_count > 0 ? event->payload_count : 0);
  }
  return {find_message(domain, *event), is_whole ? value_of(*event) : Value{}};
}

// ---- Marks and ranges. ----

void mark(const Annotation* name) { put_mark(name); }
int push(const Annotation* name) { return push_range(nullptr, name, ValueType::kNone, 0); }
uint64_t start(const Annotation* name) { return start_range(name, ValueType::kNone, 0); }

/// The forms of a function that has nothing but a message.
template <auto act>
auto with_ascii(const char* message) {
  return act(find_message(nullptr, 0, message));
}
template <auto act>
auto with_wide(const wchar_t* message) {
  return act(find_message(nullptr, 0, Utf8(message).text()));
}

void mark_domain(const Domain* domain, const EventAttributes* event) {
  const Seen seen = look_at(domain, event);
  put_mark(seen.name, seen.value.type, seen.value.bits);
}
int push_domain(const Domain* domain, const EventAttributes* event) {
  const Seen seen = look_at(domain, event);
  return push_range(domain, seen.name, seen.value.type, seen.value.bits);
}
uint64_t start_domain(const Domain* domain, const EventAttributes* event) {
  const Seen seen = look_at(domain, event);
  return start_range(seen.name, seen.value.type, seen.value.bits);
}
void mark_event(const EventAttributes* event) { mark_domain(nullptr, event); }
int push_event(const EventAttributes* event) { return push_domain(nullptr, event); }
uint64_t start_event(const EventAttributes* event) { return start_domain(nullptr, event); }
int pop_default() { return pop_range(nullptr); }
void end_domain(const Domain*, uint64_t number) { end_range(number); }

// ---- Names. ----

const Domain* create_domain(const char* name) { return find_domain(name); }
const Domain* create_domain_wide(const wchar_t* name) { return find_domain(Utf8(name).text()); }

const RegisteredString* register_string(const Domain* domain, const char* text) {
  return reinterpret_cast<const RegisteredString*>(find_message(domain, 0, text));
}
const RegisteredString* register_wide(const Domain* domain, const wchar_t* text) {
  return register_string(domain, Utf8(text).text());
}

void name_domain_category(const Domain* domain, uint32_t category, const char* name) {
  name_category(domain, category, name);
}
void name_domain_category_wide(const Domain* domain, uint32_t category, const wchar_t* name) {
  name_category(domain, category, Utf8(name).text());
}
void name_default_category(uint32_t category, const char* name) {
  name_category(nullptr, category, name);
}
void name_default_category_wide(uint32_t category, const wchar_t* name) {
  name_category(nullptr, category, Utf8(name).text());
}

void name_thread(uint32_t tid, const char* name) {
  if (name == nullptr) return;
  const int saved_errno = errno;
  const IdDefinition thread = {tid};
  char text[kMaxAnnotationName];
  const size_t bytes = strnlen(name, sizeof text - 1);
  memcpy(text, name, bytes);
  text[bytes] = '\0';
  aon_define(static_cast<uint32_t>(DefinitionType::kThreadName), &thread, sizeof thread, text,
             static_cast<uint32_t>(bytes) + 1);
  errno = saved_errno;
}
void name_thread_wide(uint32_t tid, const wchar_t* name) { name_thread(tid, Utf8(name).text()); }

/// A resource's name is a mark whose value is its address, handle or number.
void tell_resource(const Domain* domain, const char* what, uint64_t identifier, const char* name) {
  put_mark(find_resource(domain, what, name), ValueType::kUnsigned, identifier);
}

const void* create_resource(const Domain* domain, const ResourceAttributes* resource) {
  if (resource == nullptr || resource->struct_bytes < sizeof *resource) return nullptr;
  Message message = resource->message;
  const char* name = "";
  const Utf8 wide(resource->message_type == MessageType::kWide ? message.wide : nullptr);
  if (resource->message_type == MessageType::kWide) name = wide.text();
  if (resource->message_type == MessageType::kAscii && message.ascii != nullptr)
    name = message.ascii;
  if (resource->message_type == MessageType::kRegistered && message.registered != nullptr)
    name = reinterpret_cast<const Annotation*>(message.registered)->name;
  if (resource->identifier_type == ResourceType::kThreadNative) {
    name_thread(static_cast<uint32_t>(resource->identifier), name);
  } else {
    tell_resource(domain, "resource", resource->identifier, name);
  }
  return resource;  // only for being not null
}

constexpr char kDevice[] = "CUDA device";
constexpr char kContext[] = "CUDA context";
constexpr char kStream[] = "CUDA stream";
constexpr char kEvent[] = "CUDA event";

template <const char* kWhat, class Handle>
void name_ascii(Handle handle, const char* name) {
  tell_resource(nullptr, kWhat, (uint64_t)handle, name);
}
template <const char* kWhat, class Handle>
void name_wide(Handle handle, const wchar_t* name) {
  tell_resource(nullptr, kWhat, (uint64_t)handle, Utf8(name).text());
}

// ---- The tables. ----

class Table {
 public:
  Table(const Callbacks& callbacks, Module module) {
    if (callbacks.get_function_table(module, &functions_, &count_) == 0) count_ = 0;
  }
  bool is_there() const { return count_ != 0; }

  template <class Place, class F>
  void set(Place place, F* function) const {
    const uint32_t at = static_cast<uint32_t>(place);
    if (at < count_ && functions_[at] != nullptr) {
      *functions_[at] = reinterpret_cast<Function>(function);
    }
  }

  /// A name in both forms; the wide one stands behind the other.
  template <const char* kWhat, class Handle, class Place>
  void set_names(Place place) const {
    set(place, &name_ascii<kWhat, Handle>);
    set(static_cast<uint32_t>(place) + 1, &name_wide<kWhat, Handle>);
  }

 private:
  FunctionTable functions_ = nullptr;
  uint32_t count_ = 0;
};

void fill_core(const Table& table) {
  table.set(Core::kMarkEx, mark_event);
  table.set(Core::kMarkA, &with_ascii<mark>);
  table.set(Core::kMarkW, &with_wide<mark>);
  table.set(Core::kRangeStartEx, start_event);
  table.set(Core::kRangeStartA, &with_ascii<start>);
  table.set(Core::kRangeStartW, &with_wide<start>);
  table.set(Core::kRangeEnd, end_range);
  table.set(Core::kRangePushEx, push_event);
  table.set(Core::kRangePushA, &with_ascii<push>);
  table.set(Core::kRangePushW, &with_wide<push>);
  table.set(Core::kRangePop, pop_default);
  table.set(Core::kNameCategoryA, name_default_category);
  table.set(Core::kNameCategoryW, name_default_category_wide);
  table.set(Core::kNameOsThreadA, name_thread);
  table.set(Core::kNameOsThreadW, name_thread_wide);
}

void fill_core2(const Table& table) {
  table.set(Core2::kMarkEx, mark_domain);
  table.set(Core2::kRangeStartEx, start_domain);
  table.set(Core2::kRangeEnd, end_domain);
  table.set(Core2::kRangePushEx, push_domain);
  table.set(Core2::kRangePop, pop_range);
  table.set(Core2::kResourceCreate, create_resource);
  table.set(Core2::kNameCategoryA, name_domain_category);
  table.set(Core2::kNameCategoryW, name_domain_category_wide);
  table.set(Core2::kRegisterStringA, register_string);
  table.set(Core2::kRegisterStringW, register_wide);
  table.set(Core2::kCreateA, create_domain);
  table.set(Core2::kCreateW, create_domain_wide);
}

void fill_cuda(const Table& driver, const Table& runtime) {
  driver.set_names<kDevice, int>(Cuda::kDeviceA);
  driver.set_names<kContext, void*>(Cuda::kContextA);
  driver.set_names<kStream, void*>(Cuda::kStreamA);
  driver.set_names<kEvent, void*>(Cuda::kEventA);
  runtime.set_names<kDevice, int>(CudaRuntime::kDeviceA);
  runtime.set_names<kStream, void*>(CudaRuntime::kStreamA);
  runtime.set_names<kEvent, void*>(CudaRuntime::kEventA);
}

}  // namespace
}  // namespace aon::nvtx

/// Called by NVTX at the first use in each library that contains it. 1: we take its events.
// NOLINTNEXTLINE(readability-identifier-naming): NVTX's name
extern "C" AON_EXPORT int InitializeInjectionNvtx2(aon::nvtx::GetExportTable get_table) {
  using namespace aon::nvtx;
  const auto* callbacks =
      get_table != nullptr ? static_cast<const Callbacks*>(get_table(kCallbacksTable)) : nullptr;
  if (callbacks == nullptr || callbacks->struct_bytes < sizeof(Callbacks)) {
    tell_unknown_version();
    return 0;
  }
  const Table core(*callbacks, Module::kCore);
  const Table core2(*callbacks, Module::kCore2);
  if (!core.is_there() || !core2.is_there()) {
    tell_unknown_version();
    return 0;
  }
  aon::aon_follow_crashes();
  fill_core(core);
  fill_core2(core2);
  fill_cuda(Table(*callbacks, Module::kCuda), Table(*callbacks, Module::kCudaRuntime));
  const auto* version = static_cast<const Version*>(get_table(kVersionTable));
  if (version != nullptr && version->struct_bytes >= sizeof(Version)) {
    version->set_injection_version(3);
  }
  return 1;
}
