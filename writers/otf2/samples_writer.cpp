#include "writers/otf2/samples_writer.h"

#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/spool/format.h"
#include "writers/otf2/archive.h"
#include "writers/otf2/definitions.h"
#include "writers/otf2/guard.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers {
namespace {

using otf2::check;

constexpr uint64_t kTextBytes = 65536;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint32_t kGenerator = 0;
constexpr size_t kStoreBytes = 8u << 20;

/// One thread that was sampled.
struct SampledThread {
  uint64_t id;
  uint32_t group;
  std::string name;
  uint64_t count = 0;
};

/// In the order in which they are written, one thread after the other: OTF2 takes 4.5 MiB for each
/// event file that is open.
struct Sample {
  uint32_t thread;  ///< in threads_
  uint32_t call_path;
  uint64_t time_ns;

  friend bool operator<(const Sample& a, const Sample& b) {
    return std::tie(a.thread, a.time_ns, a.call_path) < std::tie(b.thread, b.time_ns, b.call_path);
  }
};

class SamplesWriter final : public Writer {
 public:
  explicit SamplesWriter(const std::filesystem::path& folder) : folder_(folder / "samples") {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

 private:
  using Store = SortedStore<Sample>;

  Status open_archive();
  uint32_t thread_of(int32_t tid);
  SampledThread describe(int32_t tid) const;
  Status keep_sample(const Event& event);
  Status write_thread(Store::Reader* reader, const Sample** at);
  uint32_t unwind_distance(std::optional<uint32_t> before, uint32_t now) const;
  Status write_local_files();
  Status write_definitions();

  std::filesystem::path folder_;
  const Model* model_ = nullptr;
  otf2::ArchiveHandle archive_;
  const Location* location_ = nullptr;   ///< null: none of samples
  std::optional<Store> samples_;         ///< of one process
  std::map<int32_t, uint32_t> numbers_;  ///< its threads, by tid: where they are in threads_
  std::unordered_set<uint64_t> ids_;     ///< of these threads; no other process can have them
  std::vector<SampledThread> threads_;
  otf2::TimeRange range_{UINT64_MAX, 0};
};

Status SamplesWriter::begin(const Model& model) {
  model_ = &model;
  return {};
}

Status SamplesWriter::open_archive() {
  std::error_code error;
  std::filesystem::create_directory(folder_, error);
  if (error) return Error{Code::kIo, "cannot create " + folder_.string() + ": " + error.message()};
  Result<otf2::ArchiveHandle> archive = otf2::create_archive(folder_, kTextBytes);
  if (!archive) return archive.error();
  archive_ = std::move(archive).value();
  return check(OTF2_Archive_OpenEvtFiles(archive_.get()), "create the folder of event files");
}

Status SamplesWriter::begin_location(const Location& location) {
  location_ = location.type == LocationType::kSamples ? &location : nullptr;
  if (location_ != nullptr) samples_.emplace(folder_.parent_path(), kStoreBytes);
  return {};
}

SampledThread SamplesWriter::describe(int32_t tid) const {
  const Group& group = model_->groups[location_->group];
  const spool::Process& process = *group.process;
  SampledThread thread{0, group.id, "Thread " + std::to_string(tid)};
  const auto own = process.thread_names.find(static_cast<uint32_t>(tid));
  const auto kernels = process.task_names.find(tid);
  if (own != process.thread_names.end()) {
    thread.name += " (" + own->second + ")";
  } else if (kernels != process.task_names.end()) {
    thread.name += " (" + kernels->second + ")";
  }
  uint64_t k = kFirstOtherThread + numbers_.size();
  if (tid == process.start.pid) {
    k = 0;
    thread.name = "Master thread";
  }
  for (const auto& [key, stream] : process.streams) {
    if (stream.tid == tid && !spool::is_agent_slot(key.first) && key.first != 0) k = key.first - 1u;
  }
  if (ids_.count((k << 32) | group.id) != 0) k = kFirstOtherThread + numbers_.size();
  thread.id = (k << 32) | group.id;
  return thread;
}

/// The thread's number in threads_.
uint32_t SamplesWriter::thread_of(int32_t tid) {
  if (numbers_.size() >= kMaxThreadLocations && numbers_.count(tid) == 0) tid = -1;
  const auto [entry, is_new] = numbers_.try_emplace(tid, static_cast<uint32_t>(threads_.size()));
  if (!is_new) return entry->second;
  SampledThread thread = describe(tid);
  if (tid == -1) thread.name = "Other threads";
  ids_.insert(thread.id);
  threads_.push_back(std::move(thread));
  return entry->second;
}

/// Regions entered since the sample before, and one more; see OTF2's CallingContext.
uint32_t SamplesWriter::unwind_distance(std::optional<uint32_t> before, uint32_t now) const {
  const std::vector<GlobalCallPath>& paths = model_->call_paths;
  uint32_t entered = 0;
  std::optional<uint32_t> at = now;
  while (at) {
    while (before && paths[*before].depth > paths[*at].depth) before = paths[*before].parent;
    if (before == at) break;
    ++entered;
    at = paths[*at].parent;
  }
  return entered + 1;
}

Status SamplesWriter::keep_sample(const Event& event) {
  const Group& group = model_->groups[location_->group];
  const auto path = group.call_path_map.find(event.region);
  if (path == group.call_path_map.end() || path->second >= model_->call_paths.size()) return {};
  const uint32_t thread = thread_of(event.peer);
  ++threads_[thread].count;
  range_.start_ns = std::min(range_.start_ns, event.time_ns);
  range_.end_ns = std::max(range_.end_ns, event.time_ns);
  return samples_->add({thread, path->second, event.time_ns});
}

Status SamplesWriter::events(std::span<const Event> events) {
  if (location_ == nullptr) return {};
  for (const Event& event : events) {
    if (event.kind != EventKind::kCallSample || event.time_ns < model_->archive_start_ns) continue;
    Status status = keep_sample(event);
    if (!status) return status;
  }
  return {};
}

/// Writes the file of the thread whose first sample is `*at`, and leaves the next one's there, or
/// null.
Status SamplesWriter::write_thread(Store::Reader* reader, const Sample** at) {
  const uint32_t number = (*at)->thread;
  OTF2_EvtWriter* file = OTF2_Archive_GetEvtWriter(archive_.get(), threads_[number].id);
  if (file == nullptr) return Error{Code::kIo, "samples: cannot create an event file"};
  std::optional<uint32_t> last;
  while (*at != nullptr && (*at)->thread == number) {
    const Sample& sample = **at;
    const uint32_t distance = unwind_distance(last, sample.call_path);
    last = sample.call_path;
    Status status = check(OTF2_EvtWriter_CallingContextSample(file, nullptr, sample.time_ns, *last,
                                                              distance, kGenerator),
                          "write CallingContextSample");
    if (!status) return status;
    Result<const Sample*> next = reader->next();
    if (!next) return next.error();
    *at = *next;
  }
  return check(OTF2_Archive_CloseEvtWriter(archive_.get(), file), "write samples");
}

Status SamplesWriter::end_location() {
  if (location_ == nullptr) return {};
  Result<Store::Reader> reader = samples_->read();
  if (!reader) return reader.error();
  Result<const Sample*> first = reader->next();
  if (!first) return first.error();
  const Sample* at = *first;
  if (at != nullptr && !archive_) {
    if (Status status = open_archive(); !status) return status;
  }
  while (at != nullptr) {
    if (Status status = write_thread(&*reader, &at); !status) return status;
  }
  samples_.reset();
  numbers_.clear();
  ids_.clear();
  return {};
}

/// The global definitions of the archive. Readers want every id dense and in order.
class SampleDefinitions {
 public:
  SampleDefinitions(OTF2_GlobalDefWriter* file, const Model& model) : file_(file), model_(model) {}

  Status write(const std::vector<SampledThread>& threads, const otf2::TimeRange& range);

 private:
  uint32_t string_id(const std::string& text);
  void write_tree();
  void write_locations(const std::vector<SampledThread>& threads);
  void write_regions();
  void write_paths();
  void write_generator();
  void note(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS && error_ == OTF2_SUCCESS) error_ = code;
  }

  OTF2_GlobalDefWriter* file_;
  const Model& model_;
  OTF2_ErrorCode error_ = OTF2_SUCCESS;
  std::unordered_map<std::string, uint32_t> strings_;
};

uint32_t SampleDefinitions::string_id(const std::string& text) {
  const auto [entry, is_new] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
  if (is_new) note(OTF2_GlobalDefWriter_WriteString(file_, entry->second, text.c_str()));
  return entry->second;
}

void SampleDefinitions::write_tree() {
  note(OTF2_GlobalDefWriter_WriteSystemTreeNode(
      file_, 0, string_id("machine"), string_id("machine"), OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  note(OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(file_, 0, OTF2_SYSTEM_TREE_DOMAIN_MACHINE));
  for (size_t n = 0; n < model_.job->nodes.size(); ++n) {
    const auto id = static_cast<uint32_t>(n + 1);
    note(OTF2_GlobalDefWriter_WriteSystemTreeNode(file_, id, string_id(model_.job->nodes[n].host),
                                                  string_id("node"), 0));
    note(OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(file_, id,
                                                        OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY));
  }
  for (const Group& group : model_.groups) {
    note(OTF2_GlobalDefWriter_WriteLocationGroup(file_, group.id, string_id(group.name),
                                                 OTF2_LOCATION_GROUP_TYPE_PROCESS, group.node + 1,
                                                 OTF2_UNDEFINED_LOCATION_GROUP));
  }
}

void SampleDefinitions::write_locations(const std::vector<SampledThread>& threads) {
  for (const SampledThread& thread : threads) {
    note(OTF2_GlobalDefWriter_WriteLocation(file_, thread.id, string_id(thread.name),
                                            OTF2_LOCATION_TYPE_CPU_THREAD, thread.count,
                                            thread.group));
  }
}

void SampleDefinitions::write_regions() {
  for (size_t id = 0; id < model_.functions.size(); ++id) {
    const GlobalFunction& function = model_.functions[id];
    const std::string& file = function.file.empty() ? function.module : function.file;
    note(OTF2_GlobalDefWriter_WriteRegion(
        file_, static_cast<uint32_t>(id), string_id(function.name), string_id(function.name),
        string_id(function.module), OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_SAMPLING,
        OTF2_REGION_FLAG_NONE, string_id(file), 0, 0));
  }
}

void SampleDefinitions::write_paths() {
  std::map<std::pair<std::string, uint32_t>, uint32_t> places;
  for (size_t id = 0; id < model_.call_paths.size(); ++id) {
    const GlobalCallPath& path = model_.call_paths[id];
    const GlobalFunction& function = model_.functions[path.function];
    uint32_t place = OTF2_UNDEFINED_SOURCE_CODE_LOCATION;
    if (path.line != 0) {
      const auto [entry, is_new] =
          places.try_emplace({function.file, path.line}, static_cast<uint32_t>(places.size()));
      place = entry->second;
      if (is_new) {
        note(OTF2_GlobalDefWriter_WriteSourceCodeLocation(file_, place, string_id(function.file),
                                                          path.line));
      }
    }
    note(OTF2_GlobalDefWriter_WriteCallingContext(
        file_, static_cast<uint32_t>(id), path.function, place,
        path.parent ? *path.parent : OTF2_UNDEFINED_CALLING_CONTEXT));
  }
}

/// The rate that was asked for; where the budget lowered it, samples are farther apart.
void SampleDefinitions::write_generator() {
  uint64_t rate_hz = 0;
  std::string name = "samples";
  for (const Group& group : model_.groups) {
    if (group.process == nullptr || group.process->sampling.empty()) continue;
    rate_hz = std::max<uint64_t>(rate_hz, group.process->sampling.front().rate_hz);
    name = group.process->sampled_event;
  }
  note(OTF2_GlobalDefWriter_WriteInterruptGenerator(
      file_, kGenerator, string_id(name), OTF2_INTERRUPT_GENERATOR_MODE_TIME, OTF2_BASE_DECIMAL, -9,
      kNsPerSecond / std::max<uint64_t>(rate_hz, 1)));
}

Status SampleDefinitions::write(const std::vector<SampledThread>& threads,
                                const otf2::TimeRange& range) {
  note(OTF2_GlobalDefWriter_WriteClockProperties(file_, kNsPerSecond, range.start_ns,
                                                 range.end_ns - range.start_ns, range.start_ns));
  string_id("");
  note(OTF2_GlobalDefWriter_WriteParadigm(file_, OTF2_PARADIGM_SAMPLING, string_id("SAMPLING"),
                                          OTF2_PARADIGM_CLASS_PROCESS));
  write_tree();
  write_locations(threads);
  write_regions();
  write_paths();
  write_generator();
  return check(error_, "write the definitions of samples");
}

/// All ids are global, so they say nothing; readers complain on stderr when they are not there.
Status SamplesWriter::write_local_files() {
  Status status = check(OTF2_Archive_OpenDefFiles(archive_.get()), "create local definitions");
  for (const SampledThread& thread : threads_) {
    if (!status) return status;
    OTF2_DefWriter* file = OTF2_Archive_GetDefWriter(archive_.get(), thread.id);
    if (file == nullptr) return Error{Code::kIo, "samples: cannot create a definition file"};
    status = check(OTF2_Archive_CloseDefWriter(archive_.get(), file), "write local definitions");
  }
  if (!status) return status;
  return check(OTF2_Archive_CloseDefFiles(archive_.get()), "write local definitions");
}

Status SamplesWriter::write_definitions() {
  Status status = check(OTF2_Archive_CloseEvtFiles(archive_.get()), "write event files");
  if (status) status = write_local_files();
  if (!status) return status;
  OTF2_GlobalDefWriter* file = OTF2_Archive_GetGlobalDefWriter(archive_.get());
  if (file == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create traces.def"};
  std::sort(threads_.begin(), threads_.end(),
            [](const SampledThread& a, const SampledThread& b) { return a.id < b.id; });
  status = SampleDefinitions(file, *model_).write(threads_, range_);
  if (!status) return status;
  status = check(OTF2_Archive_CloseGlobalDefWriter(archive_.get(), file), "write traces.def");
  if (!status) return status;
  return check(OTF2_Archive_Close(archive_.release()), "write traces.otf2");
}

Status SamplesWriter::finish(const Outcome&) { return archive_ ? write_definitions() : Status(); }

Status SamplesWriter::save(StateOut* out) {
  out->put(uint64_t{threads_.size()});
  for (const SampledThread& thread : threads_) {
    out->put(thread.id);
    out->put(thread.group);
    out->put(thread.name);
    out->put(thread.count);
  }
  out->put(range_);
  threads_.clear();
  range_ = {UINT64_MAX, 0};
  return {};
}

Status SamplesWriter::load(StateIn* in) {
  uint64_t count = 0;
  in->get(&count);
  if (count != 0 && !archive_) {
    if (Status status = open_archive(); !status) return status;
  }
  for (uint64_t i = 0; i < count; ++i) {
    SampledThread thread{};
    if (!in->get(&thread.id) || !in->get(&thread.group) || !in->get(&thread.name) ||
        !in->get(&thread.count) || !in->check(thread.group < model_->groups.size()))
      return in->status();
    threads_.push_back(std::move(thread));
  }
  otf2::TimeRange range{};
  if (!in->get(&range)) return in->status();
  range_.start_ns = std::min(range_.start_ns, range.start_ns);
  range_.end_ns = std::max(range_.end_ns, range.end_ns);
  return {};
}

}  // namespace

std::unique_ptr<Writer> make_samples_writer(const std::filesystem::path& folder) {
  return otf2::guard(std::make_unique<SamplesWriter>(folder));
}

}  // namespace aon::writers
