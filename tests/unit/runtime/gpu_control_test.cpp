#include "core/runtime/gpu_control.h"

#include <aon/gpu.h>
#include <aon/gpu_control.h>
#include <gtest/gtest.h>

#include <utility>

namespace aon::runtime {
namespace {

int g_pauses = 0;
int g_resumes = 0;

TEST(GpuControl, asks_who_has_said_that_it_can) {
  EXPECT_EQ(pause_gpu(), 0) << "there is nobody";
  EXPECT_EQ(resume_gpu(), 0);
  aon_set_gpu_control([] { return ++g_pauses; }, [] { return ++g_resumes - 1; });
  EXPECT_EQ(pause_gpu(), 1);
  EXPECT_EQ(resume_gpu(), 0) << "it could not";
  EXPECT_EQ(resume_gpu(), 1);
  EXPECT_EQ(g_pauses, 1);
}

/// What a program finds by gpu.h.
class GpuHeader : public testing::Test {
 protected:
  ~GpuHeader() override { aon_annotations_found_ = before_; }
  const aon_annotations* before_ = aon_annotations_();
};

TEST_F(GpuHeader, calls_what_libaon_has) {
  aon_gpu_functions table = {};
  table.annotations.struct_bytes = sizeof table;
  table.pause = [] { return 1; };
  table.resume = [] { return 0; };
  aon_annotations_found_ = &table.annotations;
  EXPECT_EQ(aon_gpu_pause(), 1);
  EXPECT_EQ(aon_gpu_resume(), 0);
}

TEST_F(GpuHeader, calls_nothing_of_a_library_that_is_older_or_not_there) {
  aon_annotations older = {};
  older.struct_bytes = sizeof older;
  for (const auto* found : {&std::as_const(older), &aon_annotations_none_}) {
    aon_annotations_found_ = found;
    EXPECT_EQ(aon_gpu_pause(), 0);
    EXPECT_EQ(aon_gpu_resume(), 0);
  }
}

}  // namespace
}  // namespace aon::runtime
