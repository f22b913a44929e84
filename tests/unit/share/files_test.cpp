// What one process of an assembly leaves for another: whole or not at all.

#include "writers/share/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/squashed.h"
#include "tests/unit/temporary_folder.h"

namespace aon::writers::share {
namespace {

namespace fs = std::filesystem;

class ShareFile : public testing::Test {
 protected:
  std::vector<std::string> blocks(uint64_t key) const {
    const Result<FileReader> file = FileReader::open(path_);
    EXPECT_TRUE(file);
    std::vector<std::string> found;
    const Status status = file->for_each(key, [&](std::span<const char> bytes) {
      found.emplace_back(bytes.data(), bytes.size());
      return Status();
    });
    EXPECT_TRUE(status);
    return found;
  }

  /// Three blocks of two keys.
  std::string made() {
    Result<FileWriter> file = FileWriter::create(path_);
    EXPECT_TRUE(file);
    EXPECT_TRUE(file->add(7, "first"));
    EXPECT_TRUE(file->add(3, "other"));
    EXPECT_TRUE(file->add(7, std::string(1u << 20, 'x')));
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_TRUE(file->finish());
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  /// True where every block can be read.
  bool is_readable() const {
    const Result<FileReader> file = FileReader::open(path_);
    if (!file) return false;
    const auto ignore = [](std::span<const char>) { return Status(); };
    return file->for_each(3, ignore).has_value() && file->for_each(7, ignore).has_value();
  }

  test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  fs::path path_ = folder_ / "one";
};

TEST_F(ShareFile, appears_whole_with_its_blocks_by_key) {
  made();
  EXPECT_EQ(blocks(7), (std::vector<std::string>{"first", std::string(1u << 20, 'x')}));
  EXPECT_EQ(blocks(3), std::vector<std::string>{"other"});
  EXPECT_TRUE(blocks(5).empty());
}

TEST_F(ShareFile, that_is_cut_or_changed_is_damaged) {
  const std::string bytes = made();
  EXPECT_TRUE(is_readable());
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 9973) {
    write(bytes.substr(0, size));
    EXPECT_FALSE(is_readable()) << size;
  }
  for (size_t at = 0; at < bytes.size(); at += at < 200 || at + 120 > bytes.size() ? 1 : 9973) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write(changed);
    EXPECT_FALSE(is_readable()) << at;
  }
}

TEST_F(ShareFile, of_another_version_is_refused) {
  std::string bytes = made();
  bytes[4 + 6] = '1';  // "AON share 2"
  write(bytes);
  EXPECT_FALSE(FileReader::open(path_));
}

TEST_F(ShareFile, of_somebody_else_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  made();
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(FileReader::open(path_));
}

TEST_F(ShareFile, is_own_where_the_file_system_shows_another_owner) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  path_ = fs::path(test::shown_folder(folder_)) / "one";
  {
    const test::Squashed squashed;
    made();
    EXPECT_TRUE(FileReader::open(path_));
  }
  EXPECT_FALSE(FileReader::open(path_)) << "of another user";
}

TEST_F(ShareFile, is_not_followed_elsewhere) {
  made();
  fs::rename(path_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_FALSE(FileReader::open(path_));
}

TEST_F(ShareFile, items_come_back_in_order) {
  struct Item {
    uint64_t number;
  };
  Result<FileWriter> file = FileWriter::create(path_);
  ASSERT_TRUE(file);
  ItemWriter<Item> items(&*file);
  for (uint64_t i = 0; i < 100000; ++i) ASSERT_TRUE(items.add(i / 40000, {i}));
  ASSERT_TRUE(items.flush());
  ASSERT_TRUE(file->finish());
  const Result<FileReader> reader = FileReader::open(path_);
  ASSERT_TRUE(reader);
  uint64_t next = 40000;
  ASSERT_TRUE(read_items<Item>(*reader, 1, [&](const Item& item) {
    EXPECT_EQ(item.number, next++);
    return Status();
  }));
  EXPECT_EQ(next, 80000u);
  struct AnotherItem {
    uint64_t numbers[3];
  };
  EXPECT_FALSE(read_items<AnotherItem>(*reader, 1, [](const AnotherItem&) { return Status(); }));
}

TEST(State, comes_back_as_it_was) {
  const std::map<uint32_t, std::vector<std::string>> map = {{1, {"a", ""}}, {9, {}}};
  const std::optional<std::pair<uint8_t, std::string>> pair{{3, "x"}};
  const std::vector<bool> bits = {true, false, true};
  StateOut out;
  out.put(map);
  out.put(pair);
  out.put(bits);
  out.put(std::optional<int>());
  for (size_t size = 0; size <= out.bytes().size(); ++size) {
    const std::string bytes = out.bytes().substr(0, size);
    StateIn in(bytes);
    std::map<uint32_t, std::vector<std::string>> map_read;
    std::optional<std::pair<uint8_t, std::string>> pair_read;
    std::vector<bool> bits_read;
    std::optional<int> none = 5;
    const bool is_good =
        in.get(&map_read) && in.get(&pair_read) && in.get(&bits_read) && in.get(&none);
    EXPECT_EQ(is_good, size == out.bytes().size()) << size;
    EXPECT_EQ(in.status().has_value(), is_good);
    if (!is_good) continue;
    EXPECT_TRUE(in.is_at_end());
    EXPECT_EQ(map_read, map);
    EXPECT_EQ(pair_read, pair);
    EXPECT_EQ(bits_read, bits);
    EXPECT_FALSE(none);
  }
}

TEST(State, values_of_a_vector_come_one_by_one) {
  StateOut out;
  out.put(std::vector<uint64_t>{1, 2, 3});
  out.put(true);
  const auto read = [](std::string bytes, uint64_t last) {
    StateIn in(bytes);
    std::vector<uint64_t> seen;
    bool is_behind = false;
    const bool is_whole = in.each<uint64_t>([&](uint64_t value) {
      seen.push_back(value);
      return value != last;
    });
    EXPECT_EQ(is_whole && in.get(&is_behind), is_behind);
    return std::pair(seen, is_behind);
  };
  EXPECT_EQ(read(out.bytes(), 0), std::pair(std::vector<uint64_t>({1, 2, 3}), true));
  EXPECT_EQ(read(out.bytes(), 2), std::pair(std::vector<uint64_t>({1, 2}), false));
  EXPECT_EQ(read(out.bytes().substr(0, 24), 0), std::pair(std::vector<uint64_t>(), false));
}

TEST(State, a_count_that_cannot_be_is_no_memory) {
  StateOut out;
  out.put(uint64_t{1} << 60);
  std::vector<uint64_t> numbers;
  std::string text;
  EXPECT_FALSE(StateIn(out.bytes()).get(&numbers));
  EXPECT_FALSE(StateIn(out.bytes()).get(&text));
}

}  // namespace
}  // namespace aon::writers::share
