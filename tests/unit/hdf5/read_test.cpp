// Files that are not as the writer made them, but as somebody wants them to be.

#include "writers/hdf5/read.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/temporary_folder.h"

namespace aon::writers::hdf5 {
namespace {

class ReadBack : public testing::Test {
 protected:
  ReadBack() {
    file_ =
        Handle(H5Fcreate(folder_.path("file.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    group_ = create_group(file_.get(), "group");
    EXPECT_EQ(mkfifo(pipe().c_str(), 0600), 0);
  }

  /// Whoever opens it to read waits.
  std::string pipe() const { return folder_.path("pipe"); }

  static Handle rows(hsize_t count) { return Handle(H5Screate_simple(1, &count, nullptr)); }

  void make_attribute(const char* name, hid_t type, hsize_t count, const void* values) {
    const Handle made(
        H5Acreate2(group_.get(), name, type, rows(count).get(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Awrite(made.get(), type, values), 0);
  }

  void make_column(const char* name, hsize_t count, const Handle& creation) {
    const Handle made(H5Dcreate2(file_.get(), name, H5T_NATIVE_INT64, rows(count).get(),
                                 H5P_DEFAULT, creation.get(), H5P_DEFAULT));
    ASSERT_TRUE(made.is_open());
  }

  aon::test::TemporaryFolder folder_;
  Handle file_;
  Handle group_;
  Quiet quiet_;
};

TEST_F(ReadBack, an_attribute_of_many_values_is_none_of_one) {
  const std::vector<int64_t> numbers(1000, 7);
  make_attribute("numbers", H5T_NATIVE_INT64, numbers.size(), numbers.data());
  const std::vector<const char*> words(1000, "word");
  make_attribute("words", string_type().get(), words.size(), words.data());
  EXPECT_THROW(read_integer_attribute(group_.get(), "numbers"), H5Error);
  EXPECT_THROW(read_text_attribute(group_.get(), "words"), H5Error);
  make_attribute("one", H5T_NATIVE_INT64, 1, numbers.data());
  EXPECT_EQ(read_integer_attribute(group_.get(), "one"), 7);
}

TEST_F(ReadBack, rows_that_are_not_in_the_file_take_no_memory) {
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = 1 << 16;
  H5Pset_chunk(creation.get(), 1, &chunk);
  make_column("empty", hsize_t{1} << 26, creation);
  EXPECT_THROW(read_integers(file_.get(), "empty"), H5Error);
}

TEST_F(ReadBack, rows_in_another_file_are_not_read) {
  const Handle outside(H5Pcreate(H5P_DATASET_CREATE));
  ASSERT_GE(H5Pset_external(outside.get(), pipe().c_str(), 0, 80), 0);
  make_column("outside", 10, outside);
  EXPECT_THROW(read_integers(file_.get(), "outside"), H5Error);
  const Handle mapped(H5Pcreate(H5P_DATASET_CREATE));
  ASSERT_GE(H5Pset_virtual(mapped.get(), rows(10).get(), pipe().c_str(), "x", rows(10).get()), 0);
  make_column("mapped", 10, mapped);
  EXPECT_THROW(read_numbers(file_.get(), "mapped"), H5Error);
}

TEST_F(ReadBack, a_link_leads_to_a_file_or_nowhere) {
  for (const std::string& to :
       {pipe(), std::string("pipe"), std::string("/dev/zero"), std::string("/none/pipe")}) {
    const std::string name = std::filesystem::path(to).filename();
    create_external_link(file_.get(), "links" + name, to, "/");
    EXPECT_FALSE(exists(file_.get(), "links" + name + "/column"));
    EXPECT_THROW(open_group(file_.get(), "links" + name), H5Error);
    EXPECT_THROW(names_in(file_.get(), "links" + name), H5Error);
    EXPECT_THROW(read_integers(file_.get(), "links" + name + "/column"), H5Error);
    ASSERT_GE(H5Ldelete(file_.get(), ("links" + name).c_str(), H5P_DEFAULT), 0);
  }
  { const Handle other = create_group(create_file(folder_.path("other.h5")).get(), "there"); }
  create_external_link(file_.get(), "link", "other.h5", "/");
  EXPECT_EQ(names_in(file_.get(), "link"), std::vector<std::string>{"there"});
}

}  // namespace
}  // namespace aon::writers::hdf5
