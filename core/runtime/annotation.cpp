// Names of annotations, and the slow path of their records. Nothing here locks but a definition:
// a signal handler, and a child that was fork()ed at any moment, may come in anywhere.
#include <aon/annotation.h>
#include <errno.h>
#include <string.h>

#include "core/runtime/counters.h"
#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

constexpr uint32_t kTableSize = 2 * kMaxAnnotations;  // a power of two, never full
constexpr uint32_t kTextBytes = 1u << 20;
constexpr uint32_t kMaxUnit = 64;
constexpr char kMoreNames[] = "(more names)";

/// Zero at start, inherited by children. Entry 0 is the one for names without room.
struct Names {
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> text_used;
  std::atomic<const Annotation*> table[kTableSize];
  Annotation entries[kMaxAnnotations];
  char text[kTextBytes];
};
constinit Names g_names{};  // no code of ours runs when a program starts

constexpr Annotation kMoreRegions = {kFirstAnnotationRegion,
                                     0,
                                     sizeof kMoreNames - 1,
                                     RegionRole::kUser,
                                     Paradigm::kUser,
                                     false,
                                     0,
                                     kMoreNames};

uint64_t hash_of(const Annotation& wanted) {
  uint64_t hash = 0xcbf29ce484222325ull ^
                  (uint64_t{wanted.is_counter} << 16 | static_cast<uint64_t>(wanted.role) << 8 |
                   static_cast<uint64_t>(wanted.paradigm));
  for (uint32_t i = 0; i < wanted.name_bytes; ++i) {
    hash = (hash ^ static_cast<uint8_t>(wanted.name[i])) * 0x100000001b3ull;
  }
  return hash ^ hash >> 29;
}

bool is_same(const Annotation& a, const Annotation& b) {
  return a.name_bytes == b.name_bytes && a.role == b.role && a.paradigm == b.paradigm &&
         a.is_counter == b.is_counter && memcmp(a.name, b.name, a.name_bytes) == 0;
}

/// A new entry with its own copy of the name, not yet in the table. Null: no room.
Annotation* make_entry(const Annotation& wanted) {
  const uint32_t bytes = wanted.name_bytes + 1;
  if (g_names.count.load(std::memory_order_relaxed) >= kMaxAnnotations - 1 ||
      g_names.text_used.load(std::memory_order_relaxed) > kTextBytes - bytes) {
    return nullptr;
  }
  const uint32_t index = 1 + g_names.count.fetch_add(1, std::memory_order_relaxed);
  const uint32_t offset = g_names.text_used.fetch_add(bytes, std::memory_order_relaxed);
  if (index >= kMaxAnnotations || offset > kTextBytes - bytes) return nullptr;
  char* text = g_names.text + offset;
  memcpy(text, wanted.name, wanted.name_bytes);
  Annotation* entry = &g_names.entries[index];
  *entry = wanted;
  entry->index = index;
  entry->id = wanted.is_counter ? index : kFirstAnnotationRegion + index;
  entry->name = text;
  return entry;
}

const Annotation* find(const Annotation& wanted) {
  Annotation* mine = nullptr;
  uint32_t at = static_cast<uint32_t>(hash_of(wanted)) & (kTableSize - 1);
  for (;; at = (at + 1) & (kTableSize - 1)) {
    std::atomic<const Annotation*>& place = g_names.table[at];
    // pairs with runtime:names
    const Annotation* there = place.load(std::memory_order_acquire);
    if (there == nullptr) {
      if (mine == nullptr) mine = make_entry(wanted);
      if (mine == nullptr) return &kMoreRegions;
      if (place.compare_exchange_strong(there, mine,
                                        std::memory_order_acq_rel)) {  // pairs with runtime:names
        return mine;
      }
    }
    if (is_same(*there, wanted)) return there;
  }
}

/// Length of `name` cut to `limit` bytes at the border of a character.
uint32_t cut_length(const char* name, uint32_t limit) {
  uint32_t bytes = limit;
  while (bytes > 0 && (static_cast<uint8_t>(name[bytes]) & 0xc0) == 0x80) --bytes;
  return bytes;
}

/// "NAME\0UNIT" with both cut; returns its bytes.
uint32_t join_counter(char* out, const char* name, const char* unit) {
  static constexpr char kPrefix[] = "user::";  // of the provider: metrics are PROVIDER::METRIC
  constexpr uint32_t kPrefixBytes = sizeof kPrefix - 1;
  memcpy(out, kPrefix, kPrefixBytes);
  uint32_t length = static_cast<uint32_t>(strnlen(name, kMaxAnnotationName));
  if (length == kMaxAnnotationName) length = cut_length(name, length - 1);
  memcpy(out + kPrefixBytes, name, length);
  length += kPrefixBytes;
  out[length++] = '\0';
  uint32_t unit_length = static_cast<uint32_t>(strnlen(unit, kMaxUnit));
  if (unit_length == kMaxUnit) unit_length = cut_length(unit, unit_length - 1);
  memcpy(out + length, unit, unit_length);
  return length + unit_length;
}

bool define_counter(const Annotation& counter) {
  MetricDefinition metric = {};
  metric.id = counter.id;
  metric.mode = MetricMode::kAbsolute;
  char text[kMaxAnnotationName + kMaxUnit + 32];  // name, unit, no description
  memcpy(text, counter.name, counter.name_bytes);
  text[counter.name_bytes] = '\0';
  text[counter.name_bytes + 1] = '\0';
  return aon_define(static_cast<uint32_t>(DefinitionType::kMetric), &metric, sizeof metric, text,
                    counter.name_bytes + 2);
}

bool define(const Annotation& annotation) {
  if (annotation.is_counter) return define_counter(annotation);
  const RegionDefinition region = {annotation.id, annotation.role, annotation.paradigm, 0};
  return aon_define(static_cast<uint32_t>(DefinitionType::kRegion), &region, sizeof region,
                    annotation.name, annotation.name_bytes + 1);
}

/// The ledger names who made these records. A plugin that names regions tells its state itself.
void tell_provider(Process& p, const Annotation& annotation) {
  if (annotation.paradigm == Paradigm::kNccl) return;
  const bool is_nvtx = annotation.paradigm == Paradigm::kNvtx;
  const uint32_t bit = is_nvtx ? 2 : 1;
  if ((p.annotators_told.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((p.annotators_told.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  static constexpr char kOwn[] = "annotate\0\0";
  static constexpr char kNvtx[] = "nvtx\0\0";
  ProviderDefinition provider = {};
  provider.state = ProviderState::kOn;
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider,
             is_nvtx ? kNvtx : kOwn, is_nvtx ? sizeof kNvtx : sizeof kOwn);
}

constexpr uint32_t kMaxTracked = 64;  ///< deeper regions are skipped
constexpr uint8_t kNothingDefined[kMaxAnnotations] = {};

bool counts_at_borders(const Writer* w) { return (w->tracked_regions & kCountsAtBorders) != 0; }

/// Whether a region that begins is recorded. Nothing is tracked before the first that is not.
bool track_begin(Writer* w, bool is_paused) {
  const uint32_t depth = w->tracked_regions & ~kCountsAtBorders;
  if (depth == 0 && !is_paused) return true;
  ++w->tracked_regions;
  w->defined = kNothingDefined;
  if (depth >= kMaxTracked) return false;
  const uint64_t bit = uint64_t{1} << depth;
  w->recorded_bits = is_paused ? w->recorded_bits & ~bit : w->recorded_bits | bit;
  return !is_paused;
}

/// The same when it ends.
bool track_end(Writer* w) {
  if ((w->tracked_regions & ~kCountsAtBorders) == 0) return true;
  const uint32_t depth = --w->tracked_regions & ~kCountsAtBorders;
  if (w->tracked_regions == 0) w->defined = process()->defined;
  return depth < kMaxTracked && (w->recorded_bits >> depth & 1) != 0;
}

}  // namespace

void count_at_borders(Writer* w) {
  w->tracked_regions |= kCountsAtBorders;
  w->defined = kNothingDefined;
}

}  // namespace aon::runtime

// Inside the namespace, or the declarations' visibility is lost.
namespace aon {
extern "C" {

const Annotation* aon_find_annotation(const char* name, uint32_t name_bytes, RegionRole role,
                                      Paradigm paradigm) noexcept {
  using namespace runtime;
  Annotation wanted = {0, 0, name_bytes, role, paradigm, false, 0, name};
  if (name_bytes <= kMaxAnnotationName) return find(wanted);
  static constexpr char kEllipsis[] = "...";
  constexpr uint32_t kEllipsisBytes = sizeof kEllipsis - 1;
  char cut[kMaxAnnotationName];
  const uint32_t kept = cut_length(name, kMaxAnnotationName - kEllipsisBytes);
  memcpy(cut, name, kept);
  memcpy(cut + kept, kEllipsis, kEllipsisBytes);
  wanted.name = cut;
  wanted.name_bytes = kept + kEllipsisBytes;
  return find(wanted);
}

const Annotation* aon_find_counter(const char* name, const char* unit) noexcept {
  using namespace runtime;
  char text[kMaxAnnotationName + kMaxUnit + 16];
  const uint32_t bytes = join_counter(text, name, unit);
  const Annotation* counter =
      find({0, 0, bytes, RegionRole::kUser, Paradigm::kUser, true, 0, text});
  return counter->is_counter ? counter : nullptr;
}

const Annotation* aon_annotation_at(uint32_t index) noexcept {
  using namespace runtime;
  if (index == 0 || index >= kMaxAnnotations) return index == 0 ? &kMoreRegions : nullptr;
  const Annotation& entry = g_names.entries[index];
  return entry.index == index ? &entry : nullptr;
}

Writer* aon_annotation_writer(const Annotation* annotation, RecordKind kind) noexcept {
  using namespace runtime;
  Writer* w = attached_writer();
  if (w == nullptr) return nullptr;
  const bool is_paused = w->modes[kAnnotationSite].load(std::memory_order_relaxed) != 0;
  if (kind == RecordKind::kBegin && !track_begin(w, is_paused)) return nullptr;
  if (is_paused) return nullptr;
  Process& p = *process();
  uint8_t& defined = p.defined[annotation->index];
  if (__atomic_load_n(&defined, __ATOMIC_RELAXED) == 0) {
    const int saved_errno = errno;
    tell_provider(p, *annotation);
    // Two threads may define the same, which does no harm; without room, the next use tries again.
    if (define(*annotation)) __atomic_store_n(&defined, 1, __ATOMIC_RELAXED);
    errno = saved_errno;
  }
  if (kind == RecordKind::kBegin && counts_at_borders(w)) put_border_counters(w);
  return w;
}

bool aon_annotation_ends(Writer* w) noexcept {
  using namespace runtime;
  if (w->slot == nullptr) {
    refuse_end();
    return false;
  }
  if (!track_end(w)) return false;
  if (counts_at_borders(w)) put_border_counters(w);
  return true;
}

}  // extern "C"
}  // namespace aon
