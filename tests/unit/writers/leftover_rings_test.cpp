// Whose the ring files are that lie in a job's folder, or in that of another launch.

#include "writers/assemble/leftover_rings.h"

#include <aon/ring.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/name_hash.h"
#include "tests/unit/writers/spool_fixture.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

using test::TemporaryFolder;
using testing::HasSubstr;

class LeftoverRingsTest : public testing::Test {
 protected:
  static std::string text_of(const std::string& id) { return "launch " + id + "\nevidence \n"; }

  fs::path job(const std::string& name, const std::string& id) {
    fs::path folder = jobs_.path() / name;
    fs::create_directories(folder / "spool" / "n1");
    fs::permissions(folder, fs::perms::owner_all);
    if (!id.empty()) std::ofstream(folder / ".launch") << text_of(id);
    return folder;
  }

  /// A ring's header of a process of launch `id`; "" for one that does not know.
  static fs::path add_ring(const fs::path& job, int pid, const std::string& id) {
    RingHeader header{};
    header.magic = kRingMagic;
    if (!id.empty()) header.launch_mark = strtoull(name_hash(text_of(id)).c_str(), nullptr, 16);
    fs::path file = job / "spool" / "n1" / ("fallback-" + std::to_string(pid) + "-1.ring");
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header);
    return file;
  }

  static std::vector<fs::path> strays_of(const fs::path& job) {
    std::vector<fs::path> files;
    for (const StrayRing& stray : find_leftover_rings(job).strays) files.push_back(stray.file);
    return files;
  }

  const TemporaryFolder jobs_;
};

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(LeftoverRingsTest, are_the_folders_own_by_its_launch_or_where_they_do_not_know_theirs) {
  const fs::path one = job("job", "7.0");
  const fs::path own = add_ring(one, 1, "7.0");
  const fs::path unknown = add_ring(one, 2, "");
  EXPECT_THAT(find_leftover_rings(one).own, UnorderedElementsAre(own, unknown));
  EXPECT_THAT(strays_of(one), IsEmpty());
}

TEST_F(LeftoverRingsTest, of_another_launch_are_taken_by_its_folder) {
  const fs::path one = job("job", "7.0");
  const fs::path two = job("job.1", "7.1");
  const fs::path own = add_ring(one, 1, "7.0");
  const fs::path stray = add_ring(one, 2, "7.1");
  const LeftoverRings in_one = find_leftover_rings(one);
  EXPECT_THAT(in_one.own, ElementsAre(own));
  ASSERT_EQ(in_one.strays.size(), 1u);
  EXPECT_EQ(in_one.strays[0].file, stray);
  EXPECT_EQ(in_one.strays[0].launch, two);
  EXPECT_THAT(describe(in_one.strays[0]), HasSubstr("run: aon finalize " + two.string()));
  EXPECT_THAT(find_leftover_rings(two).own, ElementsAre(stray));
  EXPECT_THAT(find_leftover_rings(two.string() + "/").own, ElementsAre(stray));
  EXPECT_THAT(find_leftover_rings(two / ".").own, ElementsAre(stray));
  fs::create_directory_symlink(two, jobs_.path() / "latest");
  EXPECT_THAT(find_leftover_rings(jobs_.path() / "latest").own, ElementsAre(stray));
  EXPECT_THAT(strays_of(two), IsEmpty());
}

TEST_F(LeftoverRingsTest, of_a_launch_without_a_folder_are_told_with_the_way_out) {
  const fs::path one = job("job", "7.0");
  job("job.2", "7.2");
  const fs::path stray = add_ring(one, 2, "7.1");
  const LeftoverRings rings = find_leftover_rings(one);
  EXPECT_THAT(rings.own, IsEmpty());
  ASSERT_EQ(rings.strays.size(), 1u);
  EXPECT_THAT(describe(rings.strays[0]),
              AllOf(HasSubstr(stray.string()), HasSubstr("NEW/spool/n1/")));
}

TEST_F(LeftoverRingsTest, belong_to_a_folder_without_a_launch_unless_another_has_theirs) {
  const fs::path one = job("job", "");
  const fs::path own = add_ring(one, 1, "7.0");
  const fs::path stray = add_ring(one, 2, "7.1");
  const fs::path two = job("job.1", "7.1");
  EXPECT_THAT(find_leftover_rings(one).own, ElementsAre(own));
  EXPECT_THAT(strays_of(one), ElementsAre(stray));
  EXPECT_THAT(find_leftover_rings(two).own, ElementsAre(stray));
}

TEST_F(LeftoverRingsTest, are_not_looked_for_where_others_may_write) {
  const fs::path one = job("job", "7.0");
  const fs::path two = job("job.1", "7.1");
  const fs::path stray = add_ring(one, 2, "7.1");
  fs::permissions(one, fs::perms::all);
  EXPECT_THAT(find_leftover_rings(two).own, IsEmpty());
  fs::permissions(one, fs::perms::owner_all);
  fs::permissions(two, fs::perms::all);
  EXPECT_EQ(find_leftover_rings(one).strays.at(0).launch, "");
  EXPECT_THAT(strays_of(one), ElementsAre(stray));
}

TEST_F(LeftoverRingsTest, that_cannot_be_read_are_the_folders_own_to_be_told) {
  const fs::path one = job("job", "7.0");
  const fs::path cut = one / "spool" / "n1" / "fallback-3-1.ring";
  std::ofstream(cut) << "cut off";
  EXPECT_THAT(find_leftover_rings(one).own, ElementsAre(cut));
}

}  // namespace
}  // namespace aon::writers
