#include "writers/assemble/share_state.h"

#include "writers/share/files.h"

namespace aon::writers {

void save_result(StateOut* out, const Model& model, const ShareResult& result) {
  out->put(result.folder);
  out->put(result.wait_rows);
  out->put(result.outcome);
  out->put(uint64_t{result.tallies.size()});
  for (const LocationTally& tally : result.tallies) {
    save_tally(out, tally, static_cast<uint32_t>(tally.location - model.locations.data()));
  }
  out->put(result.left_out_device_count);
  out->put(result.failures);
}

Status load_result(StateIn* in, const Model& model, ShareResult* result) {
  uint64_t count = 0;
  const bool is_good = in->get(&result->folder) && in->get(&result->wait_rows) &&
                       in->get(&result->outcome) && in->get(&count);
  if (!is_good) return in->status();
  // It becomes part of a path.
  in->check(result->folder.find('/') == std::string::npos && result->folder.starts_with("share."));
  for (const WaitRow& row : result->wait_rows) in->check(row.location < model.locations.size());
  for (uint64_t i = 0; i < count && in->status(); ++i) {
    LocationTally tally;
    if (Status status = load_tally(in, model, &tally); !status) return status;
    result->tallies.push_back(tally);
  }
  if (!in->get(&result->left_out_device_count) || !in->get(&result->failures)) return in->status();
  return {};
}

void save_writers(std::vector<WriterSlot>* writers, StateOut* out) {
  for (WriterSlot& slot : *writers) {
    StateOut own;
    if (slot.status) slot.status = slot.writer->save(&own);
    out->put(slot.status.has_value());
    out->put(own.bytes());
  }
}

Status load_writers(StateIn* in, std::vector<WriterSlot>* writers) {
  for (WriterSlot& slot : *writers) {
    bool is_whole = false;
    std::string bytes;
    if (!in->get(&is_whole) || !in->get(&bytes)) return in->status();
    if (!slot.status || !is_whole) continue;  // the whole share's failures name it
    StateIn own(bytes);
    if (Status status = slot.writer->load(&own); !status) return status;
    if (!own.is_at_end())
      return Error{Code::kDamaged, "a share knows more of " + slot.name + " than was read"};
  }
  return in->is_at_end() ? Status() : Status(Error{Code::kDamaged, "a share has other writers"});
}

Status write_steps(const std::filesystem::path& work, const StepPlan& steps) {
  Result<share::FileWriter> file = share::FileWriter::create(steps_file(work));
  if (!file) return file.error();
  StateOut out;
  save_plan(&out, steps);
  Status status = file->add(kWholeShare, out.bytes());
  return status ? file->finish() : status;
}

Status read_steps(const std::filesystem::path& work, const Model& model, StepPlan* steps) {
  Result<share::FileReader> file = share::FileReader::open(steps_file(work));
  if (!file) return file.error();
  return file->read(kWholeShare, [&](std::span<const char> bytes) {
    StateIn in(bytes);
    return load_plan(&in, model, steps);
  });
}

}  // namespace aon::writers
