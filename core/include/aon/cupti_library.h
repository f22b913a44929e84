/// NVIDIA's libcupti: found, never linked, by all parts that use it in the same way.
///
/// The one that the process has comes first, for two of them see half of the work each; then the
/// path in AON_CUPTI_LIB; then what the loader finds. Where that is not what AON_CUPTI_LIB says,
/// `remark` tells why.
/// Depends on nothing.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

namespace aon {

/// The versions that are known, the newest first.
constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12"};
constexpr const char* kCuptiPathRemedy =
    "the absolute path of libcupti.so.13 or libcupti.so.12 in AON_CUPTI_LIB";
/// Every libcupti has it, and nothing else.
constexpr const char* kCuptiFunction = "cuptiGetVersion";
constexpr size_t kCuptiRemarkBytes = 400;

struct CuptiLibrary {
  void* handle = nullptr;      ///< null: there is none
  bool is_path_wrong = false;  ///< AON_CUPTI_LIB names no libcupti
  /// Why what AON_CUPTI_LIB says is not used, and what is; "": it is, or says nothing.
  char remark[kCuptiRemarkBytes] = "";
};

/// What AON_CUPTI_LIB says. Null: nothing.
inline const char* cupti_path() {
  const char* path = getenv("AON_CUPTI_LIB");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

/// The working folder may be any when CUDA is used first.
inline bool is_absolute_path(const char* path) { return path[0] == '/'; }

/// The file of a library that is loaded.
inline const char* path_of_library(void* handle) {
  link_map* map = nullptr;
  const bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return is_known && map->l_name != nullptr ? map->l_name : "";
}

/// Null, and `remark` has why: it is no libcupti that can be loaded. What else it is stays loaded.
inline void* open_cupti_at(const char* path, char (&remark)[kCuptiRemarkBytes]) {
  if (!is_absolute_path(path)) {
    snprintf(remark, sizeof remark, "AON_CUPTI_LIB: %.250s is no absolute path", path);
    return nullptr;
  }
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();  // the path, and behind it why
    if (error == nullptr) error = path;
    size_t byte_count = 0;
    while (error[byte_count] != '\0') ++byte_count;
    const size_t skipped = byte_count > 249 ? byte_count - 249 : 0;
    snprintf(remark, sizeof remark, "AON_CUPTI_LIB: %s%s", skipped != 0 ? "..." : "",
             error + skipped);
  } else if (dlsym(library, kCuptiFunction) == nullptr) {
    snprintf(remark, sizeof remark, "AON_CUPTI_LIB: %.250s is no libcupti", path);
    library = nullptr;
  }
  return library;
}

/// `before_load` gets the name of each library that is about to be loaded, and what is known then.
/// Cost: a dlopen.
template <class BeforeLoad>
CuptiLibrary open_cupti(BeforeLoad before_load) {
  CuptiLibrary result;
  const char* path = cupti_path();
  for (const char* name : kCuptiNames) {
    void* own = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (own == nullptr) continue;
    result.handle = own;
    if (path != nullptr && dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) != own)
      snprintf(result.remark, sizeof result.remark,
               "AON_CUPTI_LIB: the program has loaded %.150s, which is used instead of %.150s",
               path_of_library(own), path);
    return result;
  }
  if (path != nullptr) {
    before_load(path, result);
    result.handle = open_cupti_at(path, result.remark);
    if (result.handle != nullptr) return result;
    result.is_path_wrong = true;
  }
  for (const char* name : kCuptiNames) {
    if (result.handle != nullptr) break;
    before_load(name, result);
    result.handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  if (result.handle == nullptr || !result.is_path_wrong) return result;
  size_t used = 0;
  while (result.remark[used] != '\0') ++used;
  snprintf(result.remark + used, sizeof result.remark - used, "; %.130s is used instead",
           path_of_library(result.handle));
  return result;
}
inline CuptiLibrary open_cupti() {
  return open_cupti([](const char*, const CuptiLibrary&) {});
}

}  // namespace aon
