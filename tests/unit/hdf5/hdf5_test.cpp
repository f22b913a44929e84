#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/temporary_folder.h"
#include "writers/hdf5/h5.h"
#include "writers/hdf5/hdf5_writer.h"
#include "writers/hdf5/text.h"

namespace aon::writers {
namespace {

TEST(Hdf5, says_which_file_it_cannot_create) {
  const spool::Job job{};
  Model model = test::make_model(1);
  model.job = &job;
  const auto writer = make_hdf5_writer("/proc/nonexistent/profile.h5");
  const Status status = writer->begin(model);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("/proc/nonexistent/profile.h5"), std::string::npos);
  EXPECT_NE(status.error().message.find("No such file"), std::string::npos)
      << status.error().message;
}

TEST(Hdf5, tells_the_listener_what_it_writes) {
  const aon::test::TemporaryFolder folder;
  spool::Job job{};
  job.nodes.resize(1);
  spool::Process process{};
  process.counts[{9, 0}] = 4;
  Model model = test::make_model(1);
  model.job = &job;
  model.groups[0].process = &process;
  uint64_t calls = 0;
  uint64_t counted_calls = 0;
  const auto writer = make_hdf5_writer(
      folder.path("profile.h5"), [&](const Group& group, const Location* location,
                                     std::span<const profile::RegionStatistics> rows) {
        EXPECT_EQ(group.id, 0u);
        for (const auto& row : rows) (location != nullptr ? calls : counted_calls) += row.count;
      });
  ASSERT_TRUE(writer->begin(model));
  ASSERT_TRUE(writer->begin_location(model.locations[0]));
  const Event events[] = {test::enter(1, 0), test::leave(2, 0)};
  ASSERT_TRUE(writer->events(events));
  ASSERT_TRUE(writer->end_location());
  ASSERT_TRUE(writer->finish({}));
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(counted_calls, 4u);
  EXPECT_TRUE(std::filesystem::exists(folder.path("profile.h5")));
}

TEST(Hdf5, writes_a_job_of_nothing) {
  const aon::test::TemporaryFolder folder;
  const spool::Job job{};
  Model model{};
  model.job = &job;
  const auto writer = make_hdf5_writer(folder.path("profile.h5"));
  ASSERT_TRUE(writer->begin(model));
  EXPECT_TRUE(writer->finish({}));
}

TEST(Hdf5, replaces_what_is_no_text) {
  EXPECT_EQ(hdf5::clean_text("plain"), "plain");
  EXPECT_EQ(hdf5::clean_text("\xc3\xbc"), "\xc3\xbc");
  EXPECT_EQ(hdf5::clean_text("a\xff\xc3"), "a??");
  EXPECT_EQ(hdf5::clean_text(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(hdf5::clean_text("\xc0\xaf"), "??");  // overlong
  EXPECT_EQ(hdf5::clean_text("\xe0\x80\xaf \xf0\x80\x80\xaf"), "??? ????");
  EXPECT_EQ(hdf5::clean_text("\xed\xa0\x80 \xf4\x90\x80\x80"), "??? ????");  // no characters
  EXPECT_EQ(hdf5::clean_text("a\nb"), "a\nb");
}

TEST(Hdf5, numbers_with_as_many_digits_as_the_world_needs) {
  EXPECT_EQ(hdf5::numbered("rank", 0, 1), "rank_0");
  EXPECT_EQ(hdf5::numbered("rank", 9, 10), "rank_9");
  EXPECT_EQ(hdf5::numbered("rank", 9, 11), "rank_09");
  EXPECT_EQ(hdf5::numbered("rank", 79999, 80000), "rank_79999");
}

TEST(Hdf5, keeps_group_separators_out_of_names) {
  EXPECT_EQ(hdf5::object_name("L2/miss rate"), "L2_miss_rate");
  EXPECT_EQ(hdf5::object_name(""), "_");
  EXPECT_EQ(hdf5::object_name("time"), "_time");
}

TEST(Hdf5, a_full_disk_is_told_in_the_words_of_the_system) {
  hdf5::use_library();
  const hdf5::Quiet quiet;
  std::string told;
  try {
    const hdf5::Handle file(hdf5::checked(
        H5Fcreate("/dev/full", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "cannot make the file"));
  } catch (const hdf5::H5Error& error) {
    told = error.what();
  }
  EXPECT_EQ(told, "HDF5: cannot make the file: No space left on device");
}

}  // namespace
}  // namespace aon::writers
