// Definitions and names: written once, under a lock, into slot 0's chain.
#include <aon/definition.h>
#include <aon/writer.h>
#include <errno.h>
#include <string.h>

#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

constexpr uint32_t kFragmentBytes = kMaxWords * sizeof(uint64_t);

/// Signals are blocked before the lock is taken, so a handler never waits for its own thread.
class AON_SCOPED_CAPABILITY DefinitionLock {
 public:
  explicit DefinitionLock(Process& p) AON_ACQUIRE(p.definition_lock) : mutex_(&p.definition_lock) {
    mutex_->lock();
  }
  ~DefinitionLock() AON_RELEASE() { mutex_->unlock(); }
  DefinitionLock(const DefinitionLock&) = delete;
  DefinitionLock& operator=(const DefinitionLock&) = delete;

 private:
  SignalBlock block_;
  ProcessMutex* mutex_;
};

/// Copies bytes [offset, offset + count) of payload and text, seen as one array.
void copy_part(char* out, const void* payload, uint32_t payload_bytes, const char* text,
               uint32_t offset, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = offset + i;
    out[i] = at < payload_bytes ? static_cast<const char*>(payload)[at] : text[at - payload_bytes];
  }
}

/// Of slot 0: what is missing in the output at this time.
std::atomic<uint64_t>& refused_definitions(Process& p) {
  return p.writers[kDefinitionSlot].slot->stream[0].refused;
}

/// Writes the fragments of one definition.
bool define_locked(Process& p, uint32_t type, const void* payload, uint32_t payload_bytes,
                   const char* text, uint32_t text_bytes) AON_REQUIRES(p.definition_lock) {
  if (payload_bytes > kMaxDefinitionBytes) return false;
  const uint32_t room = kMaxDefinitionBytes - payload_bytes;
  const bool is_cut = text_bytes > room;
  const uint32_t total = payload_bytes + (is_cut ? room : text_bytes);
  Writer* w = &p.writers[kDefinitionSlot];
  for (uint32_t offset = 0; offset < total || offset == 0; offset += kFragmentBytes) {
    const uint32_t count = total - offset < kFragmentBytes ? total - offset : kFragmentBytes;
    Record record = {};
    record.head.start_ticks = ticks(w);
    record.head.kind = RecordKind::kDefinition;
    record.head.slot_count = static_cast<uint8_t>(1 + (count + kSlotBytes - 1) / kSlotBytes);
    record.head.id = type;
    record.head.a32 = total;
    record.head.a64 = offset;
    char* bytes = reinterpret_cast<char*>(record.words);
    copy_part(bytes, payload, payload_bytes, text, offset, count);
    if (is_cut && offset + count == total && count > 0) bytes[count - 1] = '\0';
    if (!aon_writer_put(w, &record)) return false;
  }
  return true;
}

/// Before each definition in Process::deferred; payload and text follow.
struct Deferred {
  uint32_t type;
  uint32_t byte_count;
};

/// Puts by a definition for which the pool had no room. False: too many wait.
bool defer(Process& p, uint32_t type, const void* payload, uint32_t payload_bytes, const char* text,
           uint32_t text_bytes) AON_REQUIRES(p.definition_lock) {
  const uint32_t room = kMaxDefinitionBytes - payload_bytes;
  const bool is_cut = text_bytes > room;
  const Deferred head = {type, payload_bytes + (is_cut ? room : text_bytes)};
  const uint32_t bytes = static_cast<uint32_t>(sizeof head) + head.byte_count;
  if (bytes > kDeferredBytes - p.deferred_bytes) return false;
  char* at = p.deferred + p.deferred_bytes;
  memcpy(at, &head, sizeof head);
  copy_part(at + sizeof head, payload, payload_bytes, text, 0, head.byte_count);
  if (is_cut) at[bytes - 1] = '\0';
  p.deferred_bytes += bytes;
  return true;
}

/// Writes those that wait, in their order, as far as there is room. True: none is left.
bool define_deferred(Process& p) AON_REQUIRES(p.definition_lock) {
  uint32_t done = 0;
  uint64_t count = 0;
  while (done < p.deferred_bytes) {
    Deferred head;
    const char* at = p.deferred + done;
    memcpy(&head, at, sizeof head);
    if (!define_locked(p, head.type, at + sizeof head, head.byte_count, nullptr, 0)) break;
    done += static_cast<uint32_t>(sizeof head) + head.byte_count;
    ++count;
  }
  if (done == 0) return p.deferred_bytes == 0;
  p.deferred_bytes -= done;
  memmove(p.deferred, p.deferred + done, p.deferred_bytes);
  refused_definitions(p).fetch_sub(count, std::memory_order_relaxed);
  return p.deferred_bytes == 0;
}

/// Writes it, or puts it by and counts it as refused until it is written. False: neither. Later
/// definitions may build on earlier ones: they keep their order.
bool define_or_defer(Process& p, uint32_t type, const void* payload, uint32_t payload_bytes,
                     const char* text, uint32_t text_bytes) AON_REQUIRES(p.definition_lock) {
  if (payload_bytes > kMaxDefinitionBytes) return false;
  if (define_deferred(p) && define_locked(p, type, payload, payload_bytes, text, text_bytes))
    return true;
  if (!defer(p, type, payload, payload_bytes, text, text_bytes)) return false;
  refused_definitions(p).fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool define_region(Process& p, uint32_t id, const char* name, uint8_t role, uint8_t paradigm)
    AON_REQUIRES(p.definition_lock) {
  const RegionDefinition region = {id, static_cast<RegionRole>(role),
                                   static_cast<Paradigm>(paradigm), 0};
  return define_or_defer(p, static_cast<uint32_t>(DefinitionType::kRegion), &region, sizeof region,
                         name, static_cast<uint32_t>(strlen(name)) + 1);
}

/// FNV-1a; paradigm and role are part of the key, and zero is no hash.
uint64_t hash_name(const char* name, uint8_t role, uint8_t paradigm) {
  uint64_t hash = 0xcbf29ce484222325ull ^ (uint64_t{role} << 8 | paradigm);
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<uint8_t>(*name)) * 0x100000001b3ull;
  return hash | 1;
}

/// Where `name` is or would be. The table is never full: see intern_locked().
InternEntry& find_entry(Process& p, uint64_t hash, const char* name)
    AON_REQUIRES(p.definition_lock) {
  uint32_t at = static_cast<uint32_t>(hash) & (kInternCapacity - 1);
  for (;; at = (at + 1) & (kInternCapacity - 1)) {
    InternEntry& entry = p.intern[at];
    if (entry.id == 0) return entry;
    if (entry.hash == hash && strcmp(p.intern_text + entry.text_offset, name) == 0) return entry;
  }
}

/// The first dynamic id is the region of all names for which there is no room.
uint32_t overflow_region(Process& p, uint8_t role, uint8_t paradigm)
    AON_REQUIRES(p.definition_lock) {
  if (!p.intern_overflowed) {
    p.intern_overflowed = define_region(p, kFirstDynamicRegion, "(more names)", role, paradigm);
  }
  return kFirstDynamicRegion;
}

uint32_t intern_locked(Process& p, const char* name, uint8_t role, uint8_t paradigm)
    AON_REQUIRES(p.definition_lock) {
  const uint64_t hash = hash_name(name, role, paradigm);
  InternEntry& entry = find_entry(p, hash, name);
  if (entry.id != 0) return entry.id;
  const uint32_t bytes = static_cast<uint32_t>(strlen(name)) + 1;
  if (p.intern_count >= kInternCapacity / 4 * 3 || bytes > kMaxDefinitionBytes ||
      p.intern_text_used + bytes > kInternTextBytes) {
    return overflow_region(p, role, paradigm);
  }
  const uint32_t id = kFirstDynamicRegion + 1 + p.intern_count;
  if (!define_region(p, id, name, role, paradigm)) return id;  // tried again at its next use
  memcpy(p.intern_text + p.intern_text_used, name, bytes);
  entry = InternEntry{hash, id, p.intern_text_used};
  p.intern_text_used += bytes;
  p.intern_count += 1;
  return id;
}

}  // namespace

bool define(Process& p, uint32_t type, const void* payload, uint32_t payload_bytes,
            const char* text, uint32_t text_bytes) {
  DefinitionLock lock(p);
  if (define_or_defer(p, type, payload, payload_bytes, text, text_bytes)) return true;
  refused_definitions(p).fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace aon::runtime

// Inside the namespace, or the declarations' visibility is lost.
namespace aon {
extern "C" {

bool aon_define(uint32_t type, const void* payload, uint32_t payload_bytes, const char* text,
                uint32_t text_bytes) noexcept {
  using namespace runtime;
  if (attached_writer() == nullptr) return false;
  return define(*process(), type, payload, payload_bytes, text, text_bytes);
}

uint32_t aon_site_first_call(const Site* site) noexcept {
  using namespace runtime;
  if (site->id >= kMaxSites || attached_writer() == nullptr) return kModeOff;
  const int saved_errno = errno;
  Process& p = *process();
  DefinitionLock lock(p);
  std::atomic<uint32_t>& word = p.modes[site->id];
  uint32_t mode = word.load(std::memory_order_relaxed);
  if ((mode & ~kModePaused) == kModeUndefined) {
    const bool is_defined = define_region(p, site->id, site->name, site->role, site->paradigm);
    mode = site->default_mode;  // no room: tried again at the next call
    if (is_defined) mode |= word.fetch_or(site->default_mode, std::memory_order_relaxed);
  }
  errno = saved_errno;
  return mode;
}

uint32_t aon_intern_region(const char* name, uint8_t role, uint8_t paradigm) noexcept {
  using namespace runtime;
  if (attached_writer() == nullptr) return 0;
  Process& p = *process();
  DefinitionLock lock(p);
  return intern_locked(p, name, role, paradigm);
}

}  // extern "C"
}  // namespace aon
