#include "writers/otf2/guard.h"

#include <utility>

namespace aon::writers::otf2 {
namespace {

class GuardedWriter final : public Writer {
 public:
  explicit GuardedWriter(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}

  Status begin(const Model& model) override {
    return run([&] { return writer_->begin(model); });
  }
  Status begin_location(const Location& location) override {
    return run([&] { return writer_->begin_location(location); });
  }
  Status events(std::span<const Event> events) override {
    return run([&] { return writer_->events(events); });
  }
  Status end_location() override {
    return run([&] { return writer_->end_location(); });
  }
  Status finish(const Outcome& outcome) override {
    return run([&] { return writer_->finish(outcome); });
  }
  Status save(StateOut* out) override {
    return run([&] { return writer_->save(out); });
  }
  Status load(StateIn* in) override {
    return run([&] { return writer_->load(in); });
  }

 private:
  template <class Call>
  Status run(Call call) {
    if (!failure_) return failure_;
    try {
      return call();
    } catch (const Failure& failure) {
      failure_ = Error{Code::kIo, failure.what()};
      return failure_;
    }
  }

  std::unique_ptr<Writer> writer_;
  Status failure_;
};

}  // namespace

std::unique_ptr<Writer> guard(std::unique_ptr<Writer> writer) {
  return std::make_unique<GuardedWriter>(std::move(writer));
}

}  // namespace aon::writers::otf2
