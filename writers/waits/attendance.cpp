#include "writers/waits/attendance.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace aon::writers {
namespace {

/// Of the time that an operation takes, one part of so many is no matter.
constexpr uint64_t kAtOnceParts = 10;

bool is_uneven(CollectiveOperation operation) {
  return operation == CollectiveOperation::kAlltoallv ||
         operation == CollectiveOperation::kAlltoallw;
}

bool is_earlier(const Member& a, const Member& b) { return a.start_ns < b.start_ns; }

/// A poll of another thread than started it counts from the start on, too.
bool is_blocking(const Member& member, const WaitContext& context) {
  return member.is_blocking() && !context.is_test(member.region);
}

/// 0 for what is earlier.
uint64_t time_since(uint64_t since_ns, uint64_t time_ns) {
  return time_ns > since_ns ? time_ns - since_ns : 0;
}

/// By their durations. Of blocking operations.
std::vector<Attendance> by_durations(std::span<const Member> members, const WaitContext& context) {
  std::vector<Attendance> attendances;
  for (const Member& member : members)
    attendances.push_back({context.group(member.location), member.leave_ns - member.enter_ns});
  return attendances;
}

/// By their starts: how long each came before the last one, and what it did until then; empty
/// where nobody knows. What is beyond is that of the last one, of blocking operations.
std::vector<Attendance> by_starts(std::span<const Member> members, const Member& last,
                                  const WaitContext& context) {
  const uint64_t least_ns = is_blocking(last, context) ? last.leave_ns - last.enter_ns : 0;
  std::vector<Attendance> attendances;
  for (const Member& member : members) {
    const uint64_t error_ns = context.clock_error_ns(member.location, last.location);
    if (error_ns == kUnknownClockError) return {};
    const uint64_t until_ns = time_since(error_ns, last.start_ns);
    const uint64_t ahead_ns = time_since(member.start_ns, until_ns);
    const bool is_known = member.completed_count != 0 && !context.is_test(member.region);
    const uint64_t wait_ns =
        is_known ? wait_in(member.enter_ns, member.leave_ns, until_ns) / member.completed_count : 0;
    attendances.push_back({context.group(member.location), least_ns + ahead_ns,
                           ahead_ns - std::min(wait_ns, ahead_ns)});
  }
  // Of those within the error the one that seems to be the last is counted as such.
  std::swap(attendances.front(), attendances[static_cast<size_t>(&last - members.data())]);
  return attendances;
}

/// What an operation takes whose starts are compared: from the last start until that member has
/// completed it. Nothing where somebody did something else meanwhile, waited for something else as
/// well, or who was the last is not sure.
std::optional<uint64_t> time_if_awaited_at_once(std::span<const Member> members, const Member& last,
                                                const WaitContext& context) {
  const uint64_t time_ns = last.leave_ns - last.start_ns;
  const bool is_at_once = std::all_of(members.begin(), members.end(), [&](const Member& m) {
    const uint64_t error_ns = context.clock_error_ns(m.location, last.location);
    const uint64_t late_ns = time_since(last.start_ns, m.enter_ns);
    return m.is_alone && !context.is_test(m.region) && error_ns <= time_ns / kAtOnceParts &&
           late_ns <= time_ns / kAtOnceParts - error_ns;
  });
  return is_at_once ? std::optional(time_ns) : std::nullopt;
}

/// Where all have moved as much. False: the table is full.
bool add_true_time(std::span<const Member> members, uint32_t region, uint64_t time_ns,
                   TrueTimeTable* times) {
  const Member& first = members.front();
  const bool is_even = std::all_of(members.begin(), members.end(),
                                   [&](const Member& m) { return m.bytes == first.bytes; });
  if (!is_even || members.size() < 2 || first.bytes == 0) return true;
  return times->add(first.communicator, region, first.bytes / members.size(), time_ns);
}

}  // namespace

bool joins_all(const Member& member) {
  switch (member.operation) {
    case CollectiveOperation::kBarrier:
      return true;
    case CollectiveOperation::kAllgather:
    case CollectiveOperation::kAllgatherv:
    case CollectiveOperation::kAlltoall:
    case CollectiveOperation::kAllreduce:
    case CollectiveOperation::kReduceScatter:
    case CollectiveOperation::kReduceScatterBlock:
      return member.has_data;
    case CollectiveOperation::kAlltoallv:
    case CollectiveOperation::kAlltoallw:
      return member.is_from_all;
    default:
      return false;
  }
}

void note_attendance(std::span<const Member> members, const WaitContext& context,
                     WaitSummary* summary, TrueTimeTable* times) {
  if (!std::all_of(members.begin(), members.end(), joins_all)) return;
  const Member& last = *std::max_element(members.begin(), members.end(), is_earlier);
  const bool are_blocking = std::all_of(members.begin(), members.end(),
                                        [&](const Member& m) { return is_blocking(m, context); });
  const bool tell_durations = are_blocking && !is_uneven(last.operation);
  const std::vector<Attendance> attendances =
      tell_durations ? by_durations(members, context) : by_starts(members, last, context);
  if (attendances.empty()) {
    ++summary->uncompared_count;
    return;
  }
  const Member& first = members.front();
  const uint32_t region = are_blocking ? first.region : context.starting_region(first);
  summary->lateness.add(first.communicator, region, attendances);
  std::optional<uint64_t> time_ns;
  if (tell_durations) {
    time_ns = std::min_element(attendances.begin(), attendances.end(), [](auto& a, auto& b) {
                return a.duration_ns < b.duration_ns;
              })->duration_ns;
  } else {
    time_ns = time_if_awaited_at_once(members, last, context);
  }
  if (time_ns && !add_true_time(members, region, *time_ns, times)) ++summary->times_left_out_count;
}

}  // namespace aon::writers
