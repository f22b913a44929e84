/// Leveled log of the agent, of aon-node and of assemblies; never linked into the application. One
/// line per message, `aon[pid] level: text`, written with one write() so that lines of many
/// processes do not mix. The program sets level and target once, before it starts threads.
/// Thread: any, after set_log_*.   Signal: never.   Cost: a disabled level is one load.
#pragma once

#include "core/base/result.h"

namespace aon {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

void set_log_level(LogLevel level) noexcept;
bool log_enabled(LogLevel level) noexcept;

/// Name that stands before the pid in every line, "aon" at first. `name` must outlive the log.
void set_log_name(const char* name) noexcept;

/// Sends the log to the file `path` (0600, appended, 16 MiB at most) instead of stderr.
/// Errors: kIo, the log stays where it was.
Status set_log_file(const char* path);

/// Where the log goes, for a child that closes everything else.
int log_descriptor() noexcept;

/// Writes one line, cut at 1 KiB; printf format.
void log_line(LogLevel level, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));

}  // namespace aon

#define AON_LOG_AT(level, ...)                                          \
  do {                                                                  \
    if (::aon::log_enabled(level)) ::aon::log_line(level, __VA_ARGS__); \
  } while (false)
#define AON_LOG_ERROR(...) AON_LOG_AT(::aon::LogLevel::kError, __VA_ARGS__)
#define AON_LOG_WARNING(...) AON_LOG_AT(::aon::LogLevel::kWarning, __VA_ARGS__)
#define AON_LOG_INFO(...) AON_LOG_AT(::aon::LogLevel::kInfo, __VA_ARGS__)
#define AON_LOG_DEBUG(...) AON_LOG_AT(::aon::LogLevel::kDebug, __VA_ARGS__)
