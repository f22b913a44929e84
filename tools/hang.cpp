#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <filesystem>

#include "tools/command.h"
#include "tools/live_job.h"
#include "writers/assemble/event_pass.h"
#include "writers/assemble/model.h"
#include "writers/hang/hang.h"

namespace aon::tools {
namespace {

uint64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

int hang(const HangOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.dir + "/spool", ignored))
    return fail("hang", options.dir + " has no spool/: it is no job directory", kExitUse);
  const bool is_live = find_live_owner(options.dir, 0).has_value();
  const auto parts = writers::build_model(options.dir, writers::kDefaultOtf2Locations);
  if (!parts) return fail("hang", parts.error().message);
  const writers::Model& model = (*parts)->model;
  std::vector<writers::WriterSlot> slots;
  auto finder = std::make_unique<writers::HangFinder>();
  const writers::HangFinder& found = *finder;
  slots.push_back({"hangs", std::move(finder), {}, false});
  if (Status status = writers::EventPass(**parts, slots, [] {}).run(); !status)
    return fail("hang", status.error().message);
  const auto lines =
      writers::hang_lines(model, found.report(), is_live ? realtime_ns() : model.end_ns);
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (lines.empty()) {
    fmt::print("no call {} open for longer than --hang says\n", is_live ? "is" : "was left");
  }
  return kExitDone;
}

}  // namespace aon::tools
