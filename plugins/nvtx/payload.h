/// What the payloads of an event say of it: its message, its category and its number, where it has
/// exactly one. Those of a later payload go before those of an earlier one and of the event's
/// attributes, as NVTX has it. An event without a message has the name of its schema.
/// Thread: any, no lock.   Signal: safe.   Cost: a search for each payload.
#pragma once

#include <aon/annotation.h>

#include "nvtx/extension.h"
#include "nvtx/interface.h"

namespace aon::nvtx {

struct Value {
  ValueType type;
  uint64_t bits;
};

/// An event as all functions see it.
struct Seen {
  const Annotation* name;
  Value value;
};

inline Value real_value(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return {ValueType::kReal, bits};
}

/// `attributes` have a message and a category, or nothing.
Seen look_at_payloads(const Domain* domain, const EventAttributes& attributes,
                      const PayloadData* payloads, size_t count);

}  // namespace aon::nvtx
