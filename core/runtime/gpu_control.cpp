#include "core/runtime/gpu_control.h"

#include <aon/gpu_control.h>

#include <atomic>

namespace aon::runtime {
namespace {

// Shared. Each alone is whole: no order between the two is needed.
std::atomic<int (*)()> g_pause{nullptr};
std::atomic<int (*)()> g_resume{nullptr};

int ask(const std::atomic<int (*)()>& who) {
  int (*const function)() = who.load(std::memory_order_relaxed);
  return function != nullptr ? function() : 0;
}

}  // namespace

int pause_gpu() { return ask(g_pause); }
int resume_gpu() { return ask(g_resume); }

}  // namespace aon::runtime

namespace aon {

extern "C" void aon_set_gpu_control(int (*pause)(), int (*resume)()) noexcept {
  runtime::g_pause.store(pause, std::memory_order_relaxed);
  runtime::g_resume.store(resume, std::memory_order_relaxed);
}

}  // namespace aon
