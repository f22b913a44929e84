#include "core/base/time.h"

#include <cstdio>

namespace aon {

std::string iso_time(uint64_t time_ns) {
  const auto seconds = static_cast<time_t>(time_ns / 1'000'000'000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text + length, sizeof(text) - length, ".%09uZ",
           static_cast<unsigned>(time_ns % 1'000'000'000));
  return text;
}

}  // namespace aon
