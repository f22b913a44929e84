#include "writers/otf2/written.h"

#include <functional>
#include <utility>

namespace aon::writers::otf2 {

void save_written(const Model& model, const WrittenLocation& written, StateOut* out) {
  const std::vector<Location>& locations = model.locations;
  const Location& one = *written.location;
  const bool is_of_model = std::less_equal<>()(locations.data(), &one) &&
                           std::less<>()(&one, locations.data() + locations.size());
  out->put(written.event_count);
  out->put(is_of_model);
  if (is_of_model) {
    out->put(static_cast<uint32_t>(&one - locations.data()));
    return;
  }
  out->put(one.id);
  out->put(one.group);
  out->put(one.type);
  out->put(one.name);
  out->put(one.process);
  out->put(one.slot);
  out->put(one.device_stream);
  out->put(one.device);
}

Status load_written(StateIn* in, const Model& model, std::deque<Location>* beside,
                    std::vector<WrittenLocation>* written) {
  const Error other{Code::kDamaged, "OTF2 archive: a share of another job"};
  uint64_t event_count = 0;
  bool is_of_model = false;
  uint32_t index = 0;
  if (!in->get(&event_count) || !in->get(&is_of_model)) return in->status();
  if (is_of_model) {
    if (!in->get(&index)) return in->status();
    if (index >= model.locations.size()) return other;
    written->push_back({&model.locations[index], event_count});
    return {};
  }
  Location one{};
  const bool is_good = in->get(&one.id) && in->get(&one.group) && in->get(&one.type) &&
                       in->get(&one.name) && in->get(&one.process) && in->get(&one.slot) &&
                       in->get(&one.device_stream) && in->get(&one.device);
  if (!is_good) return in->status();
  if (one.group >= model.groups.size()) return other;
  one.in_archive = true;
  beside->push_back(std::move(one));
  written->push_back({&beside->back(), event_count});
  return {};
}

}  // namespace aon::writers::otf2
