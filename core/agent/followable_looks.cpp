#include "core/agent/followable_looks.h"

#include <system_error>
#include <thread>
#include <utility>

#include "core/agent/followable.h"

namespace aon::agent {

void FollowableLooks::run(Shared* shared, const std::vector<Question>& questions,
                          const Look& look) {
  for (const Question& question : questions) {
    Answer answer{question.number, question.image, look(question.pid)};
    if (image_of(question.pid) != question.image) answer = {question.number, 0, {}};
    const MutexLock lock(&shared->m);
    shared->answers.push_back(std::move(answer));
    if (&question == &questions.back()) --shared->thread_count;
  }
}

void FollowableLooks::ask(std::vector<Question> questions, const Look& look) {
  const MutexLock lock(&shared_->m);
  if (shared_->thread_count >= kMostLookThreads) return;
  std::erase_if(questions, [this](const Question& question) AON_REQUIRES(shared_->m) {
    return shared_->asked.count(question.number) != 0;
  });
  if (questions.empty()) return;
  try {
    std::thread([shared = shared_, questions, look] {
      run(shared.get(), questions, look);
    }).detach();
  } catch (const std::system_error&) {
    return;  // ulimit -u, which the ranks fill
  }
  ++shared_->thread_count;
  for (const Question& question : questions) shared_->asked.insert(question.number);
}

std::vector<FollowableLooks::Answer> FollowableLooks::take() {
  const MutexLock lock(&shared_->m);
  for (const Answer& answer : shared_->answers) shared_->asked.erase(answer.number);
  return std::exchange(shared_->answers, {});
}

}  // namespace aon::agent
