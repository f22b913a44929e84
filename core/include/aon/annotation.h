/// Annotations inside libaon.so and the shims: interned names and the records about them. Programs
/// use annotate.h.
///
/// A name gets an Annotation once, and keeps it and its id for ever, over forks too: names lie in
/// ordinary memory, not in that of the ring. Each process defines a name at its first use, so a
/// fork()ed child that goes on with its parent's handles writes a complete stream of its own.
///
///     aon_find_annotation() --Annotation--> begin_region(), end_region(), put_mark(), ...
///                                            fast: attached, not paused, defined
///                                            slow: aon_annotation_writer()
///
/// While the recording is paused (MPI_Pcontrol(0)) nothing begins. From the first region that was
/// skipped so, until it ends, the thread keeps a bit for each open region, so that every end shares
/// its begin's fate; the end of a region that began before the pause is recorded. Meanwhile
/// Writer::defined points at zeros: begins take the slow path, and the fast one costs no more.
///
/// Threads with hardware counters (docs/counters.md) take it always. A kCounters with the id
/// kNextBorder stands before each kBegin and kEnd of theirs then, with the values there; nothing is
/// added to them.
/// Thread: any.   Signal: safe.   Cost: one clock read and about 2 ns per record; a name's first
/// use in a process also attaches and defines.
#pragma once

#include <aon/definition.h>
#include <aon/writer.h>

#include <cstdint>

namespace aon {

constexpr uint32_t kMaxAnnotationName = 1024;  ///< bytes; longer names are cut, and end in "..."
constexpr uint32_t kNextBorder = 0xffffffffu;  ///< id of a kCounters: of the next kBegin or kEnd
/// Set in Writer::tracked_regions of a thread that reads counters at the borders of regions.
constexpr uint32_t kCountsAtBorders = 1u << 31;

/// An interned name.   Owner: libaon.so; never freed.
struct Annotation {
  uint32_t id;     ///< region or metric id in records
  uint32_t index;  ///< in Writer::defined
  uint32_t name_bytes;
  RegionRole role;
  Paradigm paradigm;
  bool is_counter;  ///< a metric; `name` holds two strings then, name and unit
  uint8_t reserved;
  const char* name;  ///< with a NUL behind its bytes
};
static_assert(sizeof(Annotation) == 24);

extern "C" {
/// The annotation of these bytes, made at the first call; of a shared one, "(more names)", where
/// there is no room for another. Never null. Does not attach.
/// Thread: any, no lock.   Signal: safe.   Cost: about 1 ns per byte.
AON_EXPORT const Annotation* aon_find_annotation(const char* name, uint32_t name_bytes,
                                                 RegionRole role, Paradigm paradigm) noexcept;

/// The same for a counter.
AON_EXPORT const Annotation* aon_find_counter(const char* name, const char* unit) noexcept;

/// The annotation that a region's number belongs to, or null.
AON_EXPORT const Annotation* aon_annotation_at(uint32_t index) noexcept;

/// Slow path of a record about `annotation`: attaches, defines, keeps track of what a pause skips.
/// Null: nothing is recorded now.
/// Thread: any; may lock.   Signal: safe.
AON_EXPORT Writer* aon_annotation_writer(const Annotation* annotation, RecordKind kind) noexcept;

/// The end of a region while some are tracked or counters are read, or of a thread without a
/// writer. False: it is not written, for its begin was skipped, or for want of a writer.
/// Thread: owner.   Signal: safe.
AON_EXPORT bool aon_annotation_ends(Writer* w) noexcept;
}

/// The calling thread's writer for a record of `kind` about `annotation`, or null.
[[gnu::always_inline]] inline Writer* annotation_writer(const Annotation* annotation,
                                                        RecordKind kind) {
  Writer* w = writer();
  if (AON_UNLIKELY(w->modes == nullptr ||
                   w->modes[kAnnotationSite].load(std::memory_order_relaxed) != 0 ||
                   w->defined[annotation->index] == 0)) {
    return aon_annotation_writer(annotation, kind);
  }
  return w;
}

/// A kBegin or kEnd was refused: the next kLost tells of it.
[[gnu::noinline, gnu::cold]] inline void note_refused_region(Writer* w, RecordKind kind) {
  HoleRegions& hole = w->hole[w->depth < kContexts ? w->depth : kContexts - 1];
  if (kind == RecordKind::kBegin) {
    ++hole.begun;
  } else if (hole.begun != 0) {
    --hole.begun;
  } else {
    ++hole.ended;
  }
}

/// Writes the kBegin or kEnd of `region`.
[[gnu::always_inline]] inline void put_region(Writer* w, RecordKind kind, uint64_t now,
                                              const Annotation* region,
                                              ValueType type = ValueType::kNone,
                                              uint64_t value = 0) {
  const bool is_written =
      put_event<0>(w, kind, now, 0, region->id, static_cast<uint32_t>(type), value, nullptr);
  if (AON_UNLIKELY(!is_written)) note_refused_region(w, kind);
}

[[gnu::always_inline]] inline void begin_region(const Annotation* region,
                                                ValueType type = ValueType::kNone,
                                                uint64_t value = 0) {
  Writer* w = annotation_writer(region, RecordKind::kBegin);
  if (AON_UNLIKELY(w == nullptr)) return;
  put_region(w, RecordKind::kBegin, ticks(w), region, type, value);
}

[[gnu::always_inline]] inline void end_region(const Annotation* region) {
  Writer* w = writer();
  const bool is_plain = w->slot != nullptr && w->tracked_regions == 0;
  if (AON_UNLIKELY(!is_plain) && !aon_annotation_ends(w)) return;
  put_region(w, RecordKind::kEnd, ticks(w), region);
}

[[gnu::always_inline]] inline void put_mark(const Annotation* mark,
                                            ValueType type = ValueType::kNone, uint64_t value = 0) {
  Writer* w = annotation_writer(mark, RecordKind::kMark);
  if (AON_UNLIKELY(w == nullptr)) return;
  put_event<0>(w, RecordKind::kMark, ticks(w), 0, mark->id, static_cast<uint32_t>(type), value,
               nullptr);
}

/// `bits` are those of a double.
[[gnu::always_inline]] inline void put_counter(const Annotation* counter, uint64_t bits) {
  Writer* w = annotation_writer(counter, RecordKind::kSample);
  if (AON_UNLIKELY(w == nullptr)) return;
  const uint64_t words[] = {0, 0};  // never multiplexed
  put_event<2>(w, RecordKind::kSample, ticks(w), 0, counter->id, 0, bits, words);
}

}  // namespace aon
