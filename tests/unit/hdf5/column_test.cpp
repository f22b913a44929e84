#include "writers/hdf5/column.h"

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.h"
#include "writers/hdf5/read.h"
#include "writers/hdf5/sparse_column.h"

namespace aon::writers::hdf5 {
namespace {

class Columns : public testing::Test {
 protected:
  H5D_layout_t layout(const std::string& path) const {
    const Handle dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    const Handle creation(H5Dget_create_plist(dataset.get()));
    return H5Pget_layout(creation.get());
  }
  hsize_t stored_bytes(const std::string& path) const {
    const Handle dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    return H5Dget_storage_size(dataset.get());
  }

  aon::test::TemporaryFolder folder_;
  const Handle file_ = create_file(folder_.path("columns.h5"));
};

TEST_F(Columns, of_a_short_table_take_what_their_values_take) {
  Table table(file_.get(), "short", "three rows");
  auto& count = table.add<uint64_t>("count", {"1", "how many"});
  auto& name = table.add_text("name", {"", "what"});
  auto& place = table.add<int32_t, 3>("place", {"1", "x, y and z"});
  for (int row = 0; row < 3; ++row) {
    count.append(row);
    name.append(std::string(row, 'n'));
    place.append({row, row + 1, row + 2});
  }
  table.finish();
  EXPECT_EQ(read_integers(file_.get(), "short/count"), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(read_texts(file_.get(), "short/name"), (std::vector<std::string>{"", "n", "nn"}));
  EXPECT_EQ(layout("short/count"), H5D_CONTIGUOUS);
  EXPECT_EQ(stored_bytes("short/count"), 3 * sizeof(uint64_t));
  EXPECT_EQ(stored_bytes("short/place"), 9 * sizeof(int32_t));
  const Handle dataset(H5Dopen2(file_.get(), "short/count", H5P_DEFAULT));
  EXPECT_EQ(read_text_attribute(dataset.get(), "units"), "1");
  EXPECT_EQ(read_text_attribute(dataset.get(), "long_name"), "how many");
  EXPECT_EQ(names_in(file_.get(), "short"),
            (std::vector<std::string>{"count", "name", "place", "row"}));
}

TEST_F(Columns, of_a_longer_table_are_deflated) {
  Table table(file_.get(), "longer", "a thousand rows");
  auto& count = table.add<uint64_t>("count");
  for (int row = 0; row < 1000; ++row) count.append(row);
  table.finish();
  const std::vector<int64_t> read = read_integers(file_.get(), "longer/count");
  ASSERT_EQ(read.size(), 1000u);
  EXPECT_EQ(read.back(), 999);
  EXPECT_LT(stored_bytes("longer/count"), 1000 * sizeof(uint64_t) / 2);
}

TEST_F(Columns, of_a_long_table_grow_and_keep_their_order) {
  const int rows = 2 * kChunkRows + 5;
  Table table(file_.get(), "long", "more than a buffer");
  auto& count = table.add<uint64_t>("count");
  auto& histogram = table.add<uint64_t, 40>("histogram");
  auto& name = table.add_text("name");
  for (int row = 0; row < rows; ++row) {
    count.append(row);
    histogram.append(std::array<uint64_t, 40>{static_cast<uint64_t>(row)});
    name.append(std::to_string(row));
  }
  table.finish();
  const std::vector<int64_t> read = read_integers(file_.get(), "long/count");
  const std::vector<std::string> names = read_texts(file_.get(), "long/name");
  ASSERT_EQ(read.size(), static_cast<size_t>(rows));
  ASSERT_EQ(names.size(), static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row) {
    ASSERT_EQ(read[row], row);
    ASSERT_EQ(names[row], std::to_string(row));
  }
  EXPECT_EQ(layout("long/count"), H5D_CHUNKED);
  EXPECT_EQ(names_in(file_.get(), "long"),
            (std::vector<std::string>{"count", "histogram", "name", "row"}));
}

TEST_F(Columns, without_rows_are_there) {
  Table table(file_.get(), "none", "no rows");
  table.add<uint64_t>("count");
  table.add_text("name");
  table.finish();
  EXPECT_TRUE(read_integers(file_.get(), "none/count").empty());
  EXPECT_TRUE(read_texts(file_.get(), "none/name").empty());
}

TEST_F(Columns, that_get_a_value_late_have_the_fill_value_before) {
  constexpr double kFill = -1;
  for (const hsize_t rows : {hsize_t{3}, kChunkRows + 1}) {
    const std::string name = "late" + std::to_string(rows);
    SparseColumn late(file_.get(), name, {}, &kFill);
    late.set(rows, 7);
    late.finish(rows + 1);
    std::vector<double> expected(rows, kFill);
    expected.push_back(7);
    EXPECT_EQ(read_numbers(file_.get(), name), expected);
  }
}

TEST_F(Columns, have_the_fill_value_where_nothing_was_set) {
  constexpr double kFill = -1;
  const hsize_t rows = 3 * kChunkRows + 5;
  SparseColumn column(file_.get(), "sparse", {}, &kFill);
  std::vector<double> expected(rows, kFill);
  for (const hsize_t row : {hsize_t{1}, kChunkRows - 1, 2 * kChunkRows, rows - 1}) {
    if (row % kChunkRows == 0) column.spill();
    column.set(row, 0);
    column.set(row, 0.5 + static_cast<double>(row));  // the later one counts
    expected[row] = 0.5 + static_cast<double>(row);
    if (row % kChunkRows == kChunkRows - 1) column.spill();
    if (row == 2 * kChunkRows) column.spill();
  }
  column.finish(rows);
  EXPECT_EQ(read_numbers(file_.get(), "sparse"), expected);
  const Handle space(H5Dget_space(column.id()));
  hsize_t chunks = 0;
  H5Dget_num_chunks(column.id(), space.get(), &chunks);
  EXPECT_EQ(chunks, 3u) << "one has no value";
}

TEST_F(Columns, keep_at_most_a_chunk_in_memory) {
  Column<uint64_t> column(file_.get(), "long", {});
  for (uint64_t row = 0; row <= kChunkRows; ++row) column.append(row);
  column.finish();
  const Handle access(H5Dget_access_plist(column.id()));
  size_t slots = 0;
  size_t bytes = 0;
  double preemption = 0;
  ASSERT_GE(H5Pget_chunk_cache(access.get(), &slots, &bytes, &preemption), 0);
  EXPECT_LE(bytes, kChunkRows * sizeof(uint64_t));
}

}  // namespace
}  // namespace aon::writers::hdf5
