/// Annotations of the program itself: regions, steps, counters and marks. C11 and C++20 (RAII forms
/// in annotate.hpp), header-only.
///
/// An annotated program needs nothing of AON to compile, link and run: at the first annotation this
/// header looks among the loaded libraries for libaon.so, which aon-run preloads. Without it every
/// call is a test of a pointer. The program may be static, PIE or not, and any of its libraries may
/// be annotated, those that are loaded later too.
///
///     aon_step_begin(i);
///       AON_REGION_BEGIN("halo");  ...  AON_REGION_END("halo");
///     aon_step_end();
///
/// libaon.so is found by an ELF note (name "AON", type 1) whose content is the distance from itself
/// to the table of functions below. Weak symbols would not do: a linker may resolve them to null in
/// a program that is not position-independent; and dlsym() lies in a library of its own before
/// glibc 2.34.
/// Thread: any.   Signal: safe, once a call of this file was made outside of handlers.
/// Cost: a pair of begin and end as an MPI call that is recorded, plus 3 ns; without AON 1 ns.
/// Regions nest within a thread; what is not balanced is closed with the region around it and
/// counted in the ledger. Names are UTF-8; they are cut at 1024 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <elf.h>
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// A region's name, as AON knows it; null without AON. Valid for ever, also after fork().
typedef const struct aon_region_name* aon_region_t;
/// The same of a counter.
typedef const struct aon_counter_name* aon_counter_t;

/// The functions in libaon.so. Only grows at its end (gpu.h); `struct_bytes` says how far it goes.
struct aon_annotations {
  uint32_t abi; /* AON_ANNOTATIONS_ABI */
  uint32_t struct_bytes;
  aon_region_t (*region)(const char* name);
  void (*region_begin)(aon_region_t region);
  void (*region_end)(aon_region_t region);
  void (*step_begin)(int64_t number);
  void (*step_end)(void);
  void (*mark)(aon_region_t name);
  void (*mark_integer)(aon_region_t name, int64_t value);
  void (*mark_real)(aon_region_t name, double value);
  aon_counter_t (*counter)(const char* name, const char* unit);
  void (*counter_set)(aon_counter_t counter, double value);
};
#define AON_ANNOTATIONS_ABI 1u

/* ---- Finding libaon.so. ---- */

// C has no nullptr; what ends in _ is internal.
// NOLINTBEGIN(modernize-use-nullptr,readability-identifier-naming)

/* One of each per program or library, whatever the number of its source files. */
#define AON_ONE_PER_FILE_ __attribute__((weak, visibility("hidden")))

/// The functions, once they were looked for.
extern const struct aon_annotations* aon_annotations_found_ AON_ONE_PER_FILE_;
const struct aon_annotations* aon_annotations_found_ = 0;
/// What is found where there is no AON.
extern const struct aon_annotations aon_annotations_none_ AON_ONE_PER_FILE_;
const struct aon_annotations aon_annotations_none_ = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

#if defined(__linux__) && defined(__LP64__)
struct dl_phdr_info;
extern int dl_iterate_phdr(int (*callback)(struct dl_phdr_info*, size_t, void*), void* data);

/* Beginning of dl_phdr_info, which <link.h> shows to programs with _GNU_SOURCE only. */
struct aon_loaded_file_ {
  uint64_t base;
  const char* name;
  const Elf64_Phdr* headers;
  uint16_t header_count;
};

static inline uint64_t aon_padded_(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Looks for the note in one segment of notes.
static inline int aon_search_notes_(const char* at, const char* end, uint64_t unit, void* out) {
  while (at < end && (size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
    const Elf64_Nhdr* note = (const Elf64_Nhdr*)(const void*)at;
    const char* name = at + sizeof(Elf64_Nhdr);
    const uint64_t content_at = aon_padded_(sizeof(Elf64_Nhdr) + note->n_namesz, unit);
    const char* content = at + content_at;
    if (content_at + note->n_descsz > (uint64_t)(end - at)) return 0; /* not a note */
    if (note->n_type == 1 && note->n_namesz == 4 && note->n_descsz == sizeof(int64_t) &&
        memcmp(name, "AON", 4) == 0) {
      int64_t distance;
      const struct aon_annotations* found;
      memcpy(&distance, content, sizeof distance);
      found = (const struct aon_annotations*)(const void*)(content + distance);
      if (found->abi != AON_ANNOTATIONS_ABI ||
          found->struct_bytes < sizeof(struct aon_annotations)) {
        return 0;
      }
      *(const struct aon_annotations**)out = found;
      return 1;
    }
    at = content + aon_padded_(note->n_descsz, unit);
  }
  return 0;
}

static inline int aon_search_file_(struct dl_phdr_info* info, size_t info_bytes, void* out) {
  const struct aon_loaded_file_* file = (const struct aon_loaded_file_*)(const void*)info;
  uint16_t i;
  (void)info_bytes;
  for (i = 0; i < file->header_count; ++i) {
    const Elf64_Phdr* header = &file->headers[i];
    const char* notes = (const char*)(uintptr_t)(file->base + header->p_vaddr);
    if (header->p_type != PT_NOTE) continue;
    if (aon_search_notes_(notes, notes + header->p_memsz, header->p_align == 8 ? 8 : 4, out)) {
      return 1;
    }
  }
  return 0;
}
#endif

static inline const struct aon_annotations* aon_look_for_annotations_(void) {
  const struct aon_annotations* found = 0;
#if defined(__linux__) && defined(__LP64__)
  dl_iterate_phdr(aon_search_file_, (void*)&found);
#endif
  if (found == 0) found = &aon_annotations_none_;
  // pairs with annotate:found
  __atomic_store_n(&aon_annotations_found_, found, __ATOMIC_RELEASE);
  return found;
}

/// The functions; those of aon_annotations_none_ are null.
static inline const struct aon_annotations* aon_annotations_(void) {
  // pairs with annotate:found
  const struct aon_annotations* found = __atomic_load_n(&aon_annotations_found_, __ATOMIC_ACQUIRE);
  return __builtin_expect(found != 0, 1) ? found : aon_look_for_annotations_();
}

/* ---- Regions. ---- */

/// True when AON records, or could, in this process.
static inline int aon_is_present(void) { return aon_annotations_()->region != 0; }

/// The region of this name; ask once and keep it. Null without AON, which all functions take.
/// Errors: beyond 8000 names, or 1 MiB of them, all further ones are "(more names)".
static inline aon_region_t aon_region(const char* name) {
  const struct aon_annotations* functions = aon_annotations_();
  return functions->region != 0 && name != 0 ? functions->region(name) : 0;
}

/// Enters `region` on the calling thread.
static inline void aon_region_begin(aon_region_t region) {
  if (region != 0) aon_annotations_()->region_begin(region);
}

/// Leaves it, and what was begun in it and not ended. Without a begin it is dropped and counted.
static inline void aon_region_end(aon_region_t region) {
  if (region != 0) aon_annotations_()->region_end(region);
}

/// For convenience; the name is looked up each time, about 1 ns per byte.
static inline void aon_region_begin_name(const char* name) { aon_region_begin(aon_region(name)); }
static inline void aon_region_end_name(const char* name) { aon_region_end(aon_region(name)); }

static inline aon_region_t aon_kept_region_(aon_region_t* place, const char* name) {
  aon_region_t region = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (__builtin_expect(region == 0, 0)) {
    region = aon_region(name);
    __atomic_store_n(place, region, __ATOMIC_RELAXED);
  }
  return region;
}

/// Enter and leave a region whose name is a constant: looked up once at each place.
#define AON_REGION_BEGIN(name)                              \
  do {                                                      \
    static aon_region_t aon_here_;                          \
    aon_region_begin(aon_kept_region_(&aon_here_, (name))); \
  } while (0)
#define AON_REGION_END(name)                              \
  do {                                                    \
    static aon_region_t aon_here_;                        \
    aon_region_end(aon_kept_region_(&aon_here_, (name))); \
  } while (0)

/* ---- Steps: iterations of the program, the unit of statistics over time. ---- */

/// Begins step `number`: a region "step" that carries its number. All ranks number alike.
static inline void aon_step_begin(int64_t number) {
  const struct aon_annotations* functions = aon_annotations_();
  if (functions->step_begin != 0) functions->step_begin(number);
}

static inline void aon_step_end(void) {
  const struct aon_annotations* functions = aon_annotations_();
  if (functions->step_end != 0) functions->step_end();
}

/* ---- Marks: something happened now. ---- */

static inline void aon_mark(aon_region_t name) {
  if (name != 0) aon_annotations_()->mark(name);
}
static inline void aon_mark_integer(aon_region_t name, int64_t value) {
  if (name != 0) aon_annotations_()->mark_integer(name, value);
}
static inline void aon_mark_real(aon_region_t name, double value) {
  if (name != 0) aon_annotations_()->mark_real(name, value);
}
static inline void aon_mark_name(const char* name) { aon_mark(aon_region(name)); }

/* ---- Counters: a value over time, such as a residual or a queue's length. ---- */

/// The counter of this name and unit; ask once and keep it. `unit` may be "".
static inline aon_counter_t aon_counter(const char* name, const char* unit) {
  const struct aon_annotations* functions = aon_annotations_();
  return functions->counter != 0 && name != 0 ? functions->counter(name, unit != 0 ? unit : "") : 0;
}

/// The counter has this value from now on.
static inline void aon_counter_set(aon_counter_t counter, double value) {
  if (counter != 0) aon_annotations_()->counter_set(counter, value);
}

// NOLINTEND(modernize-use-nullptr,readability-identifier-naming)

#ifdef __cplusplus
}
#endif
