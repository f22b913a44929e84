// What aon/annotate.h finds in libaon.so: the table of functions, and the note that leads to it.
#include <aon/annotate.h>
#include <aon/annotation.h>
#include <aon/gpu.h>
#include <stddef.h>
#include <string.h>

#include <atomic>

#include "core/runtime/gpu_control.h"

namespace aon::runtime {
namespace {

const Annotation* annotation_of(aon_region_t region) {
  return reinterpret_cast<const Annotation*>(region);
}

uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The region of all steps. A race only looks it up twice.
const Annotation* step_region() {
  static std::atomic<const Annotation*> kept;
  const Annotation* step = kept.load(std::memory_order_relaxed);
  if (AON_LIKELY(step != nullptr)) return step;
  step = aon_find_annotation("step", 4, RegionRole::kStep, Paradigm::kUser);
  kept.store(step, std::memory_order_relaxed);
  return step;
}

aon_region_t find_region(const char* name) {
  const uint32_t bytes = static_cast<uint32_t>(strnlen(name, kMaxAnnotationName + 1));
  return reinterpret_cast<aon_region_t>(
      aon_find_annotation(name, bytes, RegionRole::kUser, Paradigm::kUser));
}

void begin(aon_region_t region) { begin_region(annotation_of(region)); }
void end(aon_region_t region) { end_region(annotation_of(region)); }

void begin_step(int64_t number) {
  begin_region(step_region(), ValueType::kStep, static_cast<uint64_t>(number));
}
void end_step() { end_region(step_region()); }

void mark(aon_region_t name) { put_mark(annotation_of(name)); }
void mark_integer(aon_region_t name, int64_t value) {
  put_mark(annotation_of(name), ValueType::kSigned, static_cast<uint64_t>(value));
}
void mark_real(aon_region_t name, double value) {
  put_mark(annotation_of(name), ValueType::kReal, bits_of(value));
}

aon_counter_t find_counter(const char* name, const char* unit) {
  return reinterpret_cast<aon_counter_t>(aon_find_counter(name, unit));
}
void set_counter(aon_counter_t counter, double value) {
  put_counter(reinterpret_cast<const Annotation*>(counter), bits_of(value));
}

}  // namespace

extern "C" {
// Found by the note below only.
extern __attribute__((visibility("hidden"))) const aon_gpu_functions aon_annotations_table_v1;
const aon_gpu_functions aon_annotations_table_v1 = {
    {AON_ANNOTATIONS_ABI, sizeof(aon_gpu_functions), find_region, begin, end, begin_step, end_step,
     mark, mark_integer, mark_real, find_counter, set_counter},
    pause_gpu,
    resume_gpu};
// Programs were compiled with this: what is new goes behind it.
static_assert(offsetof(aon_gpu_functions, pause) == 88 && sizeof(aon_gpu_functions) == 104);

/// The table for callers that look symbols up, such as Python's ctypes.
extern AON_EXPORT const aon_annotations* aon_annotations_v1() noexcept;
const aon_annotations* aon_annotations_v1() noexcept {
  return &aon_annotations_table_v1.annotations;
}
}

}  // namespace aon::runtime

// The name's and the content's length, type 1, the name, the content.
asm(".pushsection .note.aon,\"a\",%note\n"
    ".balign 4\n"
    ".long 4, 8, 1\n"
    ".asciz \"AON\"\n"
    ".quad aon_annotations_table_v1 - .\n"
    ".popsection\n");
