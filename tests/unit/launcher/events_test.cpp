// Names of events, as far as they do not depend on the machine.
#include "launcher/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aon::launcher {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(EventNames, of_perf_are_known_without_a_pmu) {
  const auto events = resolve_events({"cycles", "instructions:u", "page-faults", "cycles"});
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_THAT(*events, ElementsAre("0/0x0/0x0/0x0/4/cycles", "0/0x1/0x0/0x0/6/instructions:u",
                                   "1/0x2/0x0/0x0/4/page-faults"));
}

TEST(EventNames, that_are_unknown_are_an_error_with_near_ones) {
  const auto events = resolve_events({"cycles", "instuctions"});
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code, Code::kInvalid);
  EXPECT_THAT(events.error().message, HasSubstr("'instuctions' is no event"));
  EXPECT_THAT(events.error().message, HasSubstr("near it: instructions"));
}

TEST(EventNames, with_an_unknown_attribute_are_an_error) {
  const auto events = resolve_events({"cycles:z"});
  ASSERT_FALSE(events);
  EXPECT_THAT(events.error().message, HasSubstr("attribute"));
}

TEST(EventNames, take_the_modes_of_perf_together) {
  const auto events = resolve_events({"cycles:uk", "cycles:ku", "page-faults:k"});
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_THAT(*events, ElementsAre("0/0x0/0x0/0x0/4/cycles:uk", "0/0x0/0x0/0x0/4/cycles:ku",
                                   "1/0x2/0x0/0x0/5/page-faults:k"));
}

TEST(EventNames, with_modifiers_of_samples_or_guests_tell_which_there_are) {
  for (const char* name :
       {"cycles:p", "cycles:pp", "cycles:G", "cycles:up", "alignment-faults:p"}) {
    const auto events = resolve_events({name});
    ASSERT_FALSE(events) << name;
    EXPECT_THAT(events.error().message, HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(events.error().message, HasSubstr(":u (user mode), :k (kernel)")) << name;
  }
  const auto nothing = resolve_events({"cycles:h"});
  ASSERT_FALSE(nothing);
  // A processor of which libpfm has no events knows no :h.
  EXPECT_THAT(nothing.error().message,
              AnyOf(HasSubstr("neither user mode"), HasSubstr(":u (user mode), :k (kernel)")));
}

TEST(EventNames, of_software_that_libpfm_does_not_know) {
  const auto events = resolve_events({"alignment-faults", "emulation_faults:u"});
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_THAT(*events, ElementsAre("1/0x7/0x0/0x0/4/alignment-faults",
                                   "1/0x8/0x0/0x0/6/emulation_faults:u"));
  EXPECT_THAT(resolve_events({"alignment-fault"}).error().message,
              HasSubstr("near it: alignment-faults"));
}

TEST(EventNames, none_need_no_library) { EXPECT_TRUE(resolve_events({})->empty()); }

TEST(EventNames, are_ranked_by_edit_distance_without_case_and_dashes) {
  const std::vector<std::string> names = {"branches", "cache-misses", "zen4::retired_ops",
                                          "zen4::retired_uops"};
  EXPECT_THAT(nearest_names("Cache_Mises", names, 1), ElementsAre("cache-misses"));
  EXPECT_THAT(nearest_names("retired_op", names, 2),
              ElementsAre("zen4::retired_ops", "zen4::retired_uops"));
  EXPECT_EQ(nearest_names("x", names, 9).size(), names.size());
}

TEST(BorderEvents, are_the_first_four_of_the_hardware) {
  EXPECT_EQ(border_events({"1/0x2/0/0/4/page-faults", "0/0/0/0/4/cycles"}), "0/0/0/0/4/cycles");
  EXPECT_EQ(border_events({"0/0/a", "0/1/b", "4/2/c", "3/3/d", "0/4/e"}),
            "0/0/a,0/1/b,4/2/c,3/3/d");
  EXPECT_EQ(border_events({"1/0x2/0/0/4/page-faults"}), "");
}

}  // namespace
}  // namespace aon::launcher
