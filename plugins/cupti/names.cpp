#include "cupti/names.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <string.h>

namespace aon::cupti {
namespace {

constexpr size_t kMaxName = 3072;  ///< longer ones are cut; kMaxDefinitionBytes holds them
uint32_t hash_of(const char* name, size_t bytes, uint64_t multiplier) {
  uint64_t hash = bytes * multiplier;
  for (; bytes >= 8; bytes -= 8, name += 8) {
    uint64_t word;
    memcpy(&word, name, sizeof word);
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 29;
  }
  uint64_t rest = 0;
  memcpy(&rest, name, bytes);
  hash = (hash ^ rest) * multiplier;
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace

uint32_t RegionNames::look_up(const char* name, Entry* entry) {
  const size_t bytes = strnlen(name, kMaxName);
  const uint32_t hash = hash_of(name, bytes, kMultiplier);
  if (entry->name == name && entry->hash == hash && entry->region != 0) {
    entry->pass = pass_;
    return entry->region;
  }
  char text[kMaxName + 1];
  memcpy(text, name, bytes);
  text[bytes] = '\0';
  const uint32_t region = aon_intern_region(text, static_cast<uint8_t>(RegionRole::kFunction),
                                            static_cast<uint8_t>(Paradigm::kCuda));
  has_shared_ |= region == kFirstDynamicRegion;
  has_cut_ |= bytes == kMaxName && name[bytes] != '\0';
  *entry = {name, hash, region, region != 0 ? pass_ : 0};
  return region;
}

}  // namespace aon::cupti
