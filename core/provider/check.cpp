#include "core/provider/check.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace aon::provider {
namespace {

constexpr size_t kMaxNameBytes = 31;

[[gnu::format(printf, 2, 3)]] bool refuse(Message* message, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message->text, sizeof(message->text), format, arguments);
  va_end(arguments);
  return false;
}

bool is_name(const char* name) noexcept {
  const size_t length = strnlen(name, kMaxNameBytes + 1);
  return length > 0 && length <= kMaxNameBytes &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

const char* host_text(uint32_t hosts) noexcept {
  switch (hosts) {
    case AON_HOST_PROCESS:
      return "in the profiled process (libaon.so)";
    case AON_HOST_NODE:
      return "on the node (aon-agent)";
    case AON_HOST_PROCESS | AON_HOST_NODE:
      return "in the process and on the node";
    default:
      return "nowhere (unknown `hosts`)";
  }
}

/// Owned by root or us, and nobody else may change it. A sticky folder lets others add names but
/// not replace ours.
bool is_safe(const struct stat& st) noexcept {
  if (st.st_uid != 0 && st.st_uid != geteuid()) return false;
  const bool others_write = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool sticky_folder = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
  return !others_write || sticky_folder;
}

bool is_below(const char* path, const char* folder) noexcept {
  char real_folder[PATH_MAX];
  if (folder == nullptr || realpath(folder, real_folder) == nullptr) return false;
  const size_t length = strlen(real_folder);
  return strncmp(path, real_folder, length) == 0 && path[length] == '/';
}

/// Checks `path` (resolved) and then each folder above it.
bool check_owners(char* path, Message* message) noexcept {
  for (;;) {
    struct stat st;
    if (stat(path, &st) != 0) return refuse(message, "%s: %s", path, strerror(errno));
    if (!is_safe(st)) {
      return refuse(
          message,
          "%s: uid %u, mode %04o: a provider and the folders above it must belong to root "
          "or to you and not be writable by others; `chmod go-w` it or install it",
          path, static_cast<unsigned>(st.st_uid), static_cast<unsigned>(st.st_mode & 07777));
    }
    char* slash = strrchr(path, '/');
    if (slash == nullptr || path[1] == '\0') return true;
    slash[slash == path ? 1 : 0] = '\0';
  }
}

}  // namespace

bool check_table(const aon_provider_api* table, aon_host host, Message* message) noexcept {
  if (table == nullptr) return refuse(message, "exports no symbol aon_provider_v1");
  if (table->abi != AON_PROVIDER_ABI) {
    return refuse(message, "built for provider ABI %u, this core speaks %u; rebuild it", table->abi,
                  AON_PROVIDER_ABI);
  }
  if (table->size < AON_PROVIDER_SIZE_V1) {
    return refuse(message,
                  "its table has %u bytes, ABI %u needs %u; rebuild it with this aon/provider.h",
                  table->size, AON_PROVIDER_ABI, AON_PROVIDER_SIZE_V1);
  }
  if ((table->hosts & static_cast<uint32_t>(host)) == 0) {
    return refuse(message, "runs %s, not %s", host_text(table->hosts), host_text(host));
  }
  if (table->name == nullptr || !is_name(table->name)) {
    return refuse(message, "its name must be 1 to %zu of [a-z0-9_-]", kMaxNameBytes);
  }
  if (table->description == nullptr || table->start == nullptr || table->stop == nullptr) {
    return refuse(message, "description, start and stop must not be null");
  }
  return true;
}

bool check_file(const char* path, const char* own_folder, Message* message) noexcept {
  if (path[0] != '/') return refuse(message, "%s: not an absolute path", path);
  char resolved[PATH_MAX];
  if (realpath(path, resolved) == nullptr) return refuse(message, "%s: %s", path, strerror(errno));
  struct stat st;
  if (stat(resolved, &st) != 0) return refuse(message, "%s: %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode)) return refuse(message, "%s: not a file", path);
  if (is_below(resolved, own_folder)) return true;
  return check_owners(resolved, message);
}

}  // namespace aon::provider
