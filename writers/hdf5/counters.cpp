#include "writers/hdf5/counters.h"

#include "writers/devices/device_names.h"

namespace aon::writers::hdf5 {

CounterTable::CounterTable(hid_t file, const Model& model)
    : model_(model),
      table_(file, "counters", "hardware counters by rank, location and region"),
      rank_(table_.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"})),
      process_(table_.add<uint32_t>("process", {"1", "row of /ranks"})),
      location_(table_.add<uint64_t>("location", {"1", "location id, as in the OTF2 archive"})),
      region_(table_.add<int64_t>("region", {"1", "row of /regions, -1 between the calls"})),
      counter_(table_.add_text("counter", {"", "what was counted"})),
      count_(table_.add<uint64_t>("count", {"1", "calls in the sums"})),
      inexact_count_(table_.add<uint64_t>(
          "inexact_count", {"1", "calls in which a counter was off the PMU, not in the sums"})),
      inclusive_(table_.add<uint64_t>("inclusive", {"1", "in it and what it calls"})),
      exclusive_(table_.add<uint64_t>("exclusive", {"1", "in it alone"})) {}

void CounterTable::append(const Group& group, uint64_t location,
                          std::span<const profile::CounterStatistics> rows) {
  for (const profile::CounterStatistics& row : rows) {
    rank_.append(group.rank ? int64_t{*group.rank} : -1);
    process_.append(group.id);
    location_.append(location);
    region_.append(row.region == profile::kOutsideCalls ? -1 : int64_t{row.region});
    counter_.append(devices::name_in_provider(model_.metrics[row.metric]));
    count_.append(row.count);
    inexact_count_.append(row.inexact_count);
    inclusive_.append(row.inclusive);
    exclusive_.append(row.exclusive);
  }
}

}  // namespace aon::writers::hdf5
