/// What must hold before a provider's table or file is used. Freestanding (libc only), so that
/// libaon.so and the agent apply the same rules. Depends on aon/provider.h.
/// Thread: any.   Cost: check_table nothing, check_file a few stat() calls.
#pragma once

#include <aon/provider.h>

#include <cstddef>

namespace aon::provider {

/// A sentence that says what is wrong and what to do; empty when nothing is.
struct Message {
  char text[512] = "";
  bool empty() const { return text[0] == '\0'; }
};

/// Checks abi, size, host, name and the functions that must exist. Reads no byte of the table
/// beyond the size it states. False: `message` says why.
bool check_table(const aon_provider_api* table, aon_host host, Message* message) noexcept;

/// Checks that the file at `path` may be loaded: absolute, below `own_folder` (the installation's
/// provider folder) or, like each folder above it, owned by root or the caller and not writable by
/// others. A sticky folder (/tmp) above it is accepted. False: `message` says why.
bool check_file(const char* path, const char* own_folder, Message* message) noexcept;

}  // namespace aon::provider
