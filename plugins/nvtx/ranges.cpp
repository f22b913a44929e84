#include "nvtx/ranges.h"

#include "nvtx/names.h"
#include "nvtx/open_ranges.h"

namespace aon::nvtx {
namespace {

constexpr uint32_t kMaxDepth = 63;  ///< deeper ranges of a thread have no length
constexpr uint32_t kIndexBits = 13;
constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
constexpr uint64_t kTickMask = ~uint64_t{0} >> kIndexBits;
static_assert(kMaxAnnotations <= kIndexMask + 1);

/// What one thread has pushed. A slot that goes to another thread, or to a child, is emptied.
struct Stack {
  uint32_t tid;
  uint32_t depth;  ///< may exceed kMaxDepth
  const Annotation* region[kMaxDepth];
  const Domain* domain[kMaxDepth];
};

Stack g_stacks[kMaxThreadSlots];
OpenRanges g_open_ranges;

Stack& stack_of(const Writer* w) {
  Stack& stack = g_stacks[w->slot_index];
  const uint32_t tid = w->slot->tid.load(std::memory_order_relaxed);
  if (AON_UNLIKELY(stack.tid != tid)) {
    stack.tid = tid;
    stack.depth = 0;
  }
  return stack;
}

/// Ranges of `domain` among the lowest `depth`.
int level(const Stack& stack, const Domain* domain, uint32_t depth) {
  int count = 0;
  for (uint32_t i = 0; i < depth; ++i) count += stack.domain[i] == domain ? 1 : 0;
  return count;
}

/// Takes the entry out, which mostly is the last.
void remove(Stack& stack, uint32_t at) {
  for (; AON_UNLIKELY(at + 1 < stack.depth); ++at) {
    stack.region[at] = stack.region[at + 1];
    stack.domain[at] = stack.domain[at + 1];
  }
  stack.depth -= 1;
}

/// The end of a region that never begins: the assembly drops it and counts it.
[[gnu::noinline, gnu::cold]] void tell_stray_end() {
  const Annotation* none = find_message(nullptr, 0, "(no open NVTX range)");
  Writer* w = annotation_writer(none, RecordKind::kMark);
  if (w != nullptr) put_event<0>(w, RecordKind::kEnd, ticks(w), 0, none->id, 0, 0, nullptr);
}

}  // namespace

int push_range(const Domain* domain, const Annotation* region, ValueType type, uint64_t value) {
  begin_region(region, type, value);
  const Writer* w = writer();
  if (AON_UNLIKELY(w->slot == nullptr)) return kNotTracked;
  Stack& stack = stack_of(w);
  const uint32_t at = stack.depth;
  stack.depth = at + 1;
  if (AON_UNLIKELY(at >= kMaxDepth)) {
    end_region(region);  // of no length: its pop will not be found
    return static_cast<int>(at);
  }
  stack.region[at] = region;
  stack.domain[at] = domain;
  return level(stack, domain, at);
}

int pop_range(const Domain* domain) {
  Writer* w = writer();
  if (AON_UNLIKELY(w->slot == nullptr)) {
    aon_annotation_ends(w);
    return kNotTracked;
  }
  Stack& stack = stack_of(w);
  if (AON_UNLIKELY(stack.depth > kMaxDepth)) return static_cast<int>(--stack.depth);
  for (uint32_t at = stack.depth; at-- > 0;) {
    if (stack.domain[at] != domain) continue;
    end_region(stack.region[at]);
    remove(stack, at);
    return level(stack, domain, at);
  }
  tell_stray_end();
  return kNotTracked;
}

uint64_t start_range(const Annotation* region, ValueType type, uint64_t value) {
  Writer* w = annotation_writer(region, RecordKind::kMark);
  if (w == nullptr) return 0;
  const uint64_t now = ticks(w);
  const uint64_t number = now << kIndexBits | region->index;
  const uint64_t words[] = {static_cast<uint64_t>(type), value};
  put_event<2>(w, RecordKind::kMark, now, 0, region->id,
               static_cast<uint32_t>(ValueType::kRangeStart), number, words);
  g_open_ranges.add(number);
  return number;
}

void end_range(uint64_t number) {
  if (number == 0) {  // its start was not recorded
    if (writer()->slot == nullptr) aon_annotation_ends(writer());
    return;
  }
  if (AON_UNLIKELY(!g_open_ranges.remove(number))) {
    tell_stray_end();
    return;
  }
  const Annotation* region = aon_annotation_at(static_cast<uint32_t>(number & kIndexMask));
  if (region == nullptr) return;
  Writer* w = annotation_writer(region, RecordKind::kMark);
  if (w == nullptr) return;
  const uint64_t now = ticks(w);
  const uint64_t duration = (now - (number >> kIndexBits)) & kTickMask;
  const uint64_t words[] = {now - duration};
  put_event<1>(w, RecordKind::kMark, now, 0, region->id,
               static_cast<uint32_t>(ValueType::kRangeEnd), number, words);
}

}  // namespace aon::nvtx
