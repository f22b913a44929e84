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
  out->put(result.left_out);
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
  if (!in->get(&result->left_out) || !in->get(&result->failures)) return in->status();
  return {};
}

Status save_writers(std::vector<WriterSlot>* writers, uint32_t group, share::FileWriter* file) {
  for (WriterSlot& slot : *writers) {
    StateOut out;
    out.put(true);
    if (slot.status) slot.status = slot.writer->save(&out);
    if (!slot.status) {
      out = StateOut();
      out.put(false);
    }
    if (Status status = file->add(group, out.bytes()); !status) return status;
  }
  return {};
}

Status load_writers(const share::FileReader& file, uint32_t group,
                    std::vector<WriterSlot>* writers) {
  const Error others{Code::kDamaged, "a share has other writers"};
  auto slot = writers->begin();
  Status status = file.for_each(group, [&](std::span<const char> bytes) -> Status {
    if (slot == writers->end()) return others;
    const WriterSlot& own = *slot++;
    StateIn in(bytes);
    bool is_whole = false;
    if (!in.get(&is_whole)) return in.status();
    if (!own.status || !is_whole) return {};  // the whole share's failures name it
    if (Status loaded = own.writer->load(&in); !loaded) return loaded;
    if (in.is_at_end()) return {};
    return Error{Code::kDamaged, "a share knows more of " + own.name + " than was read"};
  });
  return status && slot != writers->end() ? Status(others) : status;
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
