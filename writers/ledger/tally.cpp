#include "writers/ledger/tally.h"

namespace aon::writers {

void save_tally(StateOut* out, const LocationTally& tally, uint32_t location) {
  LocationTally copy = tally;
  copy.location = nullptr;  // an address here says nothing there
  copy.agents_count.reset();
  out->put(location);
  out->put(tally.agents_count);
  static_assert(std::is_trivially_copyable_v<LocationTally>);
  out->put(copy);
}

Status load_tally(StateIn* in, const Model& model, LocationTally* tally) {
  uint32_t location = 0;
  std::optional<uint64_t> agents_count;
  LocationTally loaded;
  if (!in->get(&location) || !in->get(&agents_count) || !in->get(&loaded) ||
      !in->check(location < model.locations.size()))
    return in->status();
  loaded.location = &model.locations[location];
  loaded.agents_count = agents_count;
  *tally = loaded;
  return {};
}

}  // namespace aon::writers
