#include "core/agent/followable_looks.h"

#include <system_error>
#include <thread>
#include <utility>

namespace aon::agent {

void FollowableLooks::run(Shared* shared) {
  MutexLock lock(&shared->m);
  while (!shared->tasks.empty()) {
    const Task task = std::move(shared->tasks.front());
    shared->tasks.pop_front();
    lock.unlock();
    const Question& question = task.question;
    Answer answer{question.number, image_of(question.pid), {}};
    if (answer.image != 0 && answer.image != question.refused_image) {
      answer.found = task.look(question.pid);
      if (image_of(question.pid) != answer.image) answer = {question.number, 0, {}};
    }
    lock.lock();
    shared->answers.push_back(std::move(answer));
  }
  --shared->thread_count;
}

void FollowableLooks::ask(const std::vector<Question>& questions, const Look& look,
                          uint64_t now_ns) {
  const MutexLock lock(&shared_->m);
  for (const Question& question : questions) {
    if (shared_->asked.try_emplace(question.number, now_ns).second)
      shared_->tasks.push_back({question, look});
  }
  if (shared_->tasks.empty() || shared_->thread_count >= kMostLookThreads) return;
  try {
    std::thread([shared = shared_] { run(shared.get()); }).detach();
    ++shared_->thread_count;
  } catch (const std::system_error&) {
    // ulimit -u, which the ranks fill: they wait for the next thread
  }
}

std::vector<FollowableLooks::Answer> FollowableLooks::take() {
  const MutexLock lock(&shared_->m);
  for (const Answer& answer : shared_->answers) shared_->asked.erase(answer.number);
  return std::exchange(shared_->answers, {});
}

std::vector<uint32_t> FollowableLooks::late(uint64_t now_ns) const {
  const MutexLock lock(&shared_->m);
  std::vector<uint32_t> numbers;
  for (const auto& [number, asked_ns] : shared_->asked) {
    if (now_ns - asked_ns >= kLateLookNs) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace aon::agent
