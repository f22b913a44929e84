#include "core/agent/followable_looks.h"

#include <system_error>
#include <thread>
#include <utility>

#include "core/agent/followable.h"

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
      answer.program = task.look(question.pid);
      if (image_of(question.pid) != answer.image) answer = {question.number, 0, {}};
    }
    lock.lock();
    shared->answers.push_back(std::move(answer));
  }
  --shared->thread_count;
}

void FollowableLooks::ask(const std::vector<Question>& questions, const Look& look) {
  const MutexLock lock(&shared_->m);
  if (shared_->thread_count >= kMostLookThreads) return;
  for (const Question& question : questions) {
    if (shared_->asked.insert(question.number).second) shared_->tasks.push_back({question, look});
  }
  if (shared_->tasks.empty()) return;
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

}  // namespace aon::agent
