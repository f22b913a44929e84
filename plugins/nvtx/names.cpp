#include "nvtx/names.h"

#include <stdio.h>
#include <string.h>

#include <atomic>

namespace aon::nvtx {
namespace {

constexpr uint32_t kMaxDomains = 256;
constexpr uint32_t kMaxCategories = 1024;
constexpr uint32_t kCacheSize = 4096;  // a power of two
constexpr uint32_t kAttributesBytes = sizeof(EventAttributes);

/// An array that only grows; what is ready may be read without a lock.
template <class T, uint32_t kCapacity>
class GrowingArray {
 public:
  /// A place of its own for the caller, or null. Whoever filled it calls publish().
  T* take() {
    if (taken_.load(std::memory_order_relaxed) >= kCapacity) return nullptr;
    const uint32_t at = taken_.fetch_add(1, std::memory_order_relaxed);
    return at < kCapacity ? &items_[at] : nullptr;
  }
  void publish(const T* item) {
    is_ready_[item - items_].store(true, std::memory_order_release);  // pairs with nvtx:array
  }
  /// The newest item that `fits`, or null.
  template <class Fits>
  const T* find(Fits fits) const {
    const uint32_t taken = taken_.load(std::memory_order_relaxed);
    for (uint32_t at = taken < kCapacity ? taken : kCapacity; at-- > 0;) {
      if (!is_ready_[at].load(std::memory_order_acquire)) continue;  // pairs with nvtx:array
      if (fits(items_[at])) return &items_[at];
    }
    return nullptr;
  }

 private:
  std::atomic<uint32_t> taken_;
  std::atomic<bool> is_ready_[kCapacity];
  T items_[kCapacity];
};

struct Category {
  const Domain* domain;
  uint32_t number;
  char name[48];
};

/// A message that was seen: all that is compared when its address comes again.
struct Seen {
  std::atomic<uint32_t> state;  ///< 0 free, 1 being filled, 2 for ever
  uint32_t category;
  const Domain* domain;
  const char* message;  ///< the end of the annotation's name
  const Annotation* annotation;
};

GrowingArray<Domain, kMaxDomains> g_domains;
GrowingArray<Category, kMaxCategories> g_categories;
Seen g_seen[kMaxAnnotations];  // by Annotation::index
std::atomic<const Seen*> g_cache[kCacheSize];
constexpr Domain kMoreDomains = {14, "(more domains)"};

uint32_t cache_index(const Domain* domain, uint32_t category, const char* message) {
  uint64_t key = reinterpret_cast<uint64_t>(message) ^ reinterpret_cast<uint64_t>(domain) << 20 ^
                 uint64_t { category } << 40;
  key *= 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(key >> 52);
}
static_assert(kCacheSize == 1u << (64 - 52));

/// Copies `text` without cutting a character, and a NUL. Returns the bytes before it.
uint32_t copy_cut(char* out, uint32_t room, const char* text) {
  uint32_t bytes = static_cast<uint32_t>(strnlen(text, room));
  if (bytes == room) {
    --bytes;
    while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  }
  memcpy(out, text, bytes);
  out[bytes] = '\0';
  return bytes;
}

/// "DOMAIN/CATEGORY:"; returns its bytes.
uint32_t put_prefix(char* out, const Domain* domain, uint32_t category) {
  uint32_t bytes = 0;
  if (domain != nullptr) {
    memcpy(out, domain->name, domain->name_bytes);
    bytes = domain->name_bytes;
  }
  if (category != 0) {
    const Category* named = g_categories.find([=](const Category& candidate) {
      return candidate.domain == domain && candidate.number == category;
    });
    const int added = named != nullptr
                          ? snprintf(out + bytes, kMaxPrefix - bytes, "/%s", named->name)
                          : snprintf(out + bytes, kMaxPrefix - bytes, "/%u", category);
    bytes += static_cast<uint32_t>(added);
  }
  if (bytes != 0) out[bytes++] = ':';
  return bytes;
}

/// Remembers the message, so that its address is enough next time.
void remember(const Domain* domain, uint32_t category, const char* message,
              const Annotation* annotation, uint32_t prefix_bytes) {
  Seen& seen = g_seen[annotation->index];
  uint32_t state = 0;
  if (annotation->index == 0) return;  // of many names
  if (seen.state.compare_exchange_strong(state, 1, std::memory_order_relaxed)) {
    seen.category = category;
    seen.domain = domain;
    seen.message = annotation->name + prefix_bytes;
    seen.annotation = annotation;
    seen.state.store(2, std::memory_order_release);              // pairs with nvtx:seen
  } else if (seen.state.load(std::memory_order_acquire) != 2) {  // pairs with nvtx:seen
    return;
  }
  g_cache[cache_index(domain, category, message)].store(
      &seen, std::memory_order_release);  // pairs with nvtx:cache
}

/// Slow path: builds the whole name.
[[gnu::noinline]] const Annotation* learn_message(const Domain* domain, uint32_t category,
                                                  const char* message) {
  char name[kMaxPrefix + kMaxAnnotationName + 1];
  const uint32_t prefix_bytes = put_prefix(name, domain, category);
  const uint32_t bytes = static_cast<uint32_t>(strnlen(message, kMaxAnnotationName + 1));
  memcpy(name + prefix_bytes, message, bytes);
  const Annotation* annotation =
      aon_find_annotation(name, prefix_bytes + bytes, RegionRole::kUser, Paradigm::kNvtx);
  remember(domain, category, message, annotation, prefix_bytes);
  return annotation;
}

}  // namespace

static_assert(sizeof(wchar_t) == sizeof(uint32_t));

Utf8::Utf8(const wchar_t* wide) {
  uint32_t at = 0;
  for (; wide != nullptr && *wide != 0 && at < kMaxAnnotationName; ++wide) {
    uint32_t c;
    memcpy(&c, wide, sizeof c);
    if (c < 0x80) {
      text_[at++] = static_cast<char>(c);
    } else if (c < 0x800) {
      text_[at++] = static_cast<char>(0xc0 | c >> 6);
      text_[at++] = static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      text_[at++] = static_cast<char>(0xe0 | c >> 12);
      text_[at++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text_[at++] = static_cast<char>(0x80 | (c & 0x3f));
    } else {
      text_[at++] = static_cast<char>(0xf0 | (c >> 18 & 0x07));
      text_[at++] = static_cast<char>(0x80 | (c >> 12 & 0x3f));
      text_[at++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text_[at++] = static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  text_[at] = '\0';
}

const Domain* find_domain(const char* name) {
  if (name == nullptr) return nullptr;
  Domain wanted;
  wanted.name_bytes = copy_cut(wanted.name, sizeof wanted.name, name);
  const Domain* known = g_domains.find(
      [&](const Domain& candidate) { return strcmp(candidate.name, wanted.name) == 0; });
  if (known != nullptr) return known;
  Domain* domain = g_domains.take();
  if (domain == nullptr) return &kMoreDomains;
  memcpy(domain->name, wanted.name, wanted.name_bytes + 1);
  domain->name_bytes = wanted.name_bytes;
  g_domains.publish(domain);
  return domain;
}

void name_category(const Domain* domain, uint32_t category, const char* name) {
  Category* named = name != nullptr ? g_categories.take() : nullptr;
  if (named == nullptr) return;
  named->domain = domain;
  named->number = category;
  copy_cut(named->name, sizeof named->name, name);
  g_categories.publish(named);
}

const Annotation* find_message(const Domain* domain, uint32_t category, const char* message) {
  if (AON_UNLIKELY(message == nullptr)) message = "";
  const Seen* seen = g_cache[cache_index(domain, category, message)].load(
      std::memory_order_acquire);  // pairs with nvtx:cache
  if (AON_LIKELY(seen != nullptr && seen->domain == domain && seen->category == category &&
                 strcmp(seen->message, message) == 0)) {
    return seen->annotation;
  }
  return learn_message(domain, category, message);
}

const Annotation* find_message(const Domain* domain, const EventAttributes& event) {
  if (AON_UNLIKELY(event.struct_bytes < kAttributesBytes)) return find_message(domain, 0, "");
  switch (event.message_type) {
    case MessageType::kAscii:
      return find_message(domain, event.category, event.message.ascii);
    case MessageType::kWide:
      return find_message(domain, event.category, Utf8(event.message.wide).text());
    case MessageType::kRegistered: {
      const auto* string = reinterpret_cast<const Annotation*>(event.message.registered);
      if (string == nullptr) break;
      if (event.category == 0) return string;
      const uint32_t prefix_bytes = domain != nullptr ? domain->name_bytes + 1 : 0;
      const bool has_prefix = prefix_bytes <= string->name_bytes;
      return find_message(domain, event.category, string->name + (has_prefix ? prefix_bytes : 0));
    }
    default:
      break;
  }
  return find_message(domain, event.category, "");
}

const Annotation* find_resource(const Domain* domain, const char* what, const char* name) {
  char text[kMaxAnnotationName];
  snprintf(text, sizeof text, "%s %s", what, name != nullptr ? name : "");
  return find_message(domain, 0, text);
}

}  // namespace aon::nvtx
