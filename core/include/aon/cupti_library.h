/// NVIDIA's libcupti: found, never linked, by all parts that use it in the same way.
///
/// The one that the process has comes first, for two of them see half of the work each; then the
/// path in AON_CUPTI_LIB; then what the loader finds.
/// Depends on nothing.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

namespace aon {

/// The versions that are known, the newest first.
constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12"};
constexpr const char* kCuptiPathVariable = "AON_CUPTI_LIB";

/// Null: nobody has told a path.
inline const char* cupti_path() {
  const char* path = getenv(kCuptiPathVariable);
  return path != nullptr && path[0] == '/' ? path : nullptr;
}

/// Null: there is none.   Cost: a dlopen.
inline void* open_cupti() {
  for (const char* name : kCuptiNames) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  }
  if (const char* path = cupti_path()) {
    if (void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  for (const char* name : kCuptiNames) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace aon
