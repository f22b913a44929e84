/// A question to somebody who may not answer, a name server say, asked in a thread of its own.
/// Thread: any.   Cost: that of a thread; who is not answered in time leaves it behind, until the
/// answer comes or the process ends.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace aon {

/// What `ask()` returns; nullopt when that takes longer than `patience`, or where no thread is to
/// be had. `ask` owns what it uses: it may outlive the caller. What it throws, the caller gets.
template <class Ask>
auto answer_within(std::chrono::milliseconds patience, Ask ask) -> std::optional<decltype(ask())> {
  std::packaged_task<decltype(ask())()> task(std::move(ask));
  auto answer = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace aon
