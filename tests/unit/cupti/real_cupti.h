/// The libcupti of this machine, where there is one; no driver is needed to load it.
#pragma once

#include <dlfcn.h>

namespace aon::cupti::test {

/// Its path or name, or null.
inline const char* find_real_cupti() {
  for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda-13.0/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"}) {
    if (dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr) return name;
  }
  return nullptr;
}

}  // namespace aon::cupti::test
