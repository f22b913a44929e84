// What profile.h5 has of metrics over time: names, places and what many of them cost.
#include "writers/hdf5/series.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/spool/format.h"
#include "tests/unit/profile/one_rank.h"
#include "tests/unit/temporary_folder.h"
#include "writers/hdf5/read.h"

namespace aon::writers::hdf5 {
namespace {

using Numbers = std::vector<double>;

/// Two ranks on a node, and the node's own location.
class AllSeries : public testing::Test {
 protected:
  AllSeries() : model_(test::make_model(2)) {
    file_ = create_file(folder_.path("series.h5"));
    job_.nodes.resize(1);
    job_.nodes[0].host = "node0";
    model_.job = &job_;
    Location node = model_.locations[0];
    node.id = uint64_t{7} << 32;
    node.type = LocationType::kMetric;
    node.process = spool::kNodeProcess;
    model_.locations.push_back(node);
  }

  uint32_t define(const std::string& name, const std::string& unit = "1",
                  const std::string& provider = "user") {
    model_.metrics.push_back(
        {provider + "::" + name, unit, "", provider, MetricMode::kAbsolute, false});
    return static_cast<uint32_t>(model_.metrics.size() - 1);
  }
  static Event sample(uint64_t time_ns, uint32_t metric, double value, uint64_t enabled_ns = 0,
                      uint64_t running_ns = 0) {
    Event made = test::event(EventKind::kSample, time_ns, metric);
    made.bytes = std::bit_cast<uint64_t>(value);
    made.request = enabled_ns;
    made.bytes_received = running_ns;
    return made;
  }
  void write(SeriesWriter* writer, size_t location, const std::vector<Event>& samples) const {
    writer->begin(model_.locations[location]);
    for (const Event& one : samples) writer->add(one);
    writer->end();
  }
  Numbers numbers(const std::string& path) const { return read_numbers(file_.get(), path); }
  std::vector<std::string> names(const std::string& path) const {
    return names_in(file_.get(), path);
  }
  std::string unit(const std::string& path) const {
    const Handle dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    return read_text_attribute(dataset.get(), "units");
  }
  hsize_t chunk_count(const std::string& path) const {
    const Handle dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    const Handle space(H5Dget_space(dataset.get()));
    hsize_t count = 0;
    H5Dget_num_chunks(dataset.get(), space.get(), &count);
    return count;
  }

  aon::test::TemporaryFolder folder_;
  Handle file_;
  spool::Job job_{};
  Model model_;
};

TEST_F(AllSeries, metrics_of_one_name_are_told_apart) {
  // The third would take the name that the first one has.
  define("loss_2");
  define("loss", "nats");
  define("loss", "bits");
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(1, 0, 0.5), sample(2, 1, 1.5), sample(3, 2, 2.5)});
  const std::string folder = "series/rank_0/user";
  EXPECT_EQ(names(folder), (std::vector<std::string>{"time", "loss_2", "loss", "loss_2_2"}));
  EXPECT_EQ(numbers(folder + "/loss_2")[0], 0.5);
  EXPECT_EQ(numbers(folder + "/loss")[1], 1.5);
  EXPECT_EQ(numbers(folder + "/loss_2_2")[2], 2.5);
  EXPECT_EQ(unit(folder + "/loss"), "nats");
  EXPECT_EQ(unit(folder + "/loss_2_2"), "bits");
}

TEST_F(AllSeries, names_that_hdf5_makes_alike_are_told_apart) {
  define("time");
  define("_time");
  define("a/b");
  define("a_b");
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(1, 0, 1), sample(2, 1, 2), sample(3, 2, 3), sample(4, 3, 4)});
  EXPECT_EQ(names("series/rank_0/user"),
            (std::vector<std::string>{"time", "_time", "_time_1", "a_b", "a_b_3"}));
}

TEST_F(AllSeries, a_metric_may_be_called_as_the_scale_of_another) {
  define("cycles_scale");
  define("cycles");
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(1, 0, 7), sample(2, 1, 8, 1000, 500)});
  const std::string folder = "series/rank_0/user";
  EXPECT_EQ(numbers(folder + "/cycles_scale")[0], 7);
  EXPECT_EQ(numbers(folder + "/cycles")[1], 8);
  EXPECT_EQ(numbers(folder + "/cycles_scale_1"), (Numbers{1, 2}));
}

TEST_F(AllSeries, a_place_that_is_in_use_is_not_taken_again) {
  const uint32_t first = define("one", "1", "user_1");
  const uint32_t second = define("two");
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(1, first, 1), sample(1, second, 2)});
  write(&writer, 0, {sample(1, first, 3), sample(1, second, 4)});
  EXPECT_EQ(numbers("series/rank_0/user_1/one"), (Numbers{1}));
  EXPECT_EQ(numbers("series/rank_0/user/two"), (Numbers{2}));
  EXPECT_EQ(numbers("series/rank_0/user_1_1/one"), (Numbers{3}));
  EXPECT_EQ(numbers("series/rank_0/user_2/two"), (Numbers{4}));
}

TEST_F(AllSeries, a_counter_of_a_program_belongs_to_its_rank_whatever_its_name) {
  const uint32_t used = define("gpu_0/mem/used");
  const uint32_t power = define("gpu_GPU-1/nvml/power", "W", "nvml");
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(1, used, 10)});
  write(&writer, 1, {sample(1, used, 11)});
  write(&writer, 2, {sample(1, power, 12)});
  EXPECT_EQ(numbers("series/rank_0/user/gpu_0_mem_used"), (Numbers{10}));
  EXPECT_EQ(numbers("series/rank_1/user/gpu_0_mem_used"), (Numbers{11}));
  EXPECT_EQ(numbers("series/gpu_GPU-1/nvml/power"), (Numbers{12}));
}

TEST_F(AllSeries, of_counters_that_threads_set_begin_with_the_archive) {
  const uint32_t set = define("loss");
  const uint32_t read = define("load", "1", "node");
  model_.archive_start_ns = 20;
  SeriesWriter writer(file_.get(), model_);
  write(&writer, 0, {sample(19, set, 1), sample(20, set, 2), sample(21, set, 3)});
  write(&writer, 2, {sample(19, read, 4), sample(20, read, 5)});
  EXPECT_EQ(numbers("series/rank_0/user/loss"), (Numbers{2, 3}));
  EXPECT_EQ(numbers("series/node_0/node/load"), (Numbers{4, 5}));
}

TEST_F(AllSeries, rows_without_a_value_are_nan) {
  define("a");
  define("b");
  SeriesWriter writer(file_.get(), model_);
  std::vector<Event> samples;
  const auto last = static_cast<uint64_t>(3 * kChunkRows);  // of times, from 0
  for (uint64_t time = 0; time <= last; ++time) samples.push_back(sample(time, 0, 0.5));
  samples.push_back(sample(last, 1, 7));
  write(&writer, 0, samples);
  const Numbers a = numbers("series/rank_0/user/a");
  const Numbers b = numbers("series/rank_0/user/b");
  ASSERT_EQ(a.size(), last + 1);
  ASSERT_EQ(b.size(), last + 1);
  EXPECT_EQ(a, Numbers(last + 1, 0.5));
  for (size_t row = 0; row < last; ++row) ASSERT_TRUE(std::isnan(b[row])) << row;
  EXPECT_EQ(b[last], 7);
}

TEST_F(AllSeries, a_value_is_not_paid_for_by_the_other_metrics) {
  constexpr uint32_t kMetrics = 50;
  for (uint32_t metric = 0; metric < kMetrics; ++metric) define("m" + std::to_string(metric));
  SeriesWriter writer(file_.get(), model_);
  std::vector<Event> samples;
  uint64_t time = 0;
  for (uint32_t metric = 0; metric < kMetrics; ++metric) {
    for (uint64_t i = 0; i < kChunkRows; ++i) samples.push_back(sample(time++, metric, metric));
  }
  write(&writer, 0, samples);
  for (uint32_t metric = 0; metric < kMetrics; ++metric) {
    const std::string path = "series/rank_0/user/m" + std::to_string(metric);
    EXPECT_EQ(chunk_count(path), 1u);
    const Numbers values = numbers(path);
    ASSERT_EQ(values.size(), time);
    EXPECT_EQ(values[metric * kChunkRows], metric);
    EXPECT_EQ(values[(metric + 1) * kChunkRows - 1], metric);
    EXPECT_TRUE(std::isnan(values[(metric + 1) * kChunkRows % time]));
  }
}

}  // namespace
}  // namespace aon::writers::hdf5
