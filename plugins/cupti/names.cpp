#include "cupti/names.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <string.h>

namespace aon::cupti {
namespace {

constexpr size_t kMaxName = 3072;  ///< longer ones are cut; kMaxDefinitionBytes holds them
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;

uint32_t hash_of(const char* name, size_t bytes) {
  uint64_t hash = bytes * kMultiplier;
  for (; bytes >= 8; bytes -= 8, name += 8) {
    uint64_t word;
    memcpy(&word, name, sizeof word);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  }
  uint64_t rest = 0;
  memcpy(&rest, name, bytes);
  hash = (hash ^ rest) * kMultiplier;
  return static_cast<uint32_t>(hash >> 32);
}

uint32_t place_of(const char* name) {
  return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(name) * kMultiplier) >> 52);
}

}  // namespace

uint32_t RegionNames::id_of(const char* name) {
  static_assert(kEntries == 1u << (64 - 52));
  Entry& entry = entries_[place_of(name)];
  if (entry.name == name && entry.pass == pass_ && entry.region != 0) return entry.region;
  return look_up(name, &entry);
}

uint32_t RegionNames::look_up(const char* name, Entry* entry) {
  const size_t bytes = strnlen(name, kMaxName);
  const uint32_t hash = hash_of(name, bytes);
  if (entry->name == name && entry->hash == hash && entry->region != 0) {
    entry->pass = pass_;
    return entry->region;
  }
  char text[kMaxName + 1];
  memcpy(text, name, bytes);
  text[bytes] = '\0';
  const uint32_t region = aon_intern_region(text, static_cast<uint8_t>(RegionRole::kFunction),
                                            static_cast<uint8_t>(Paradigm::kCuda));
  *entry = {name, hash, region, pass_};
  return region;
}

}  // namespace aon::cupti
