// Files of the model: each name once, and what the members of a communicator opened together once,
// by the name that the first of them gave it.

#include <map>
#include <string>
#include <tuple>

#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

constexpr uint32_t kAnyName = 0xffffffffu;

class FileUnifier {
 public:
  explicit FileUnifier(Model* model) : model_(model) {}

  void add_files(Group* group) {
    for (const auto& [local, file] : group->process->files) {
      const uint32_t name = name_of(file.name);
      group->file_name_map[local] = name;
      if ((file.definition.mode & (kFileReads | kFileWrites)) == 0) continue;
      group->file_map[local] = id_of(file.definition, name, *group);
    }
  }

 private:
  uint32_t name_of(const std::string& name) {
    const auto next = static_cast<uint32_t>(model_->file_names.size());
    const auto [entry, is_new] = names_.try_emplace(name, next);
    if (is_new) model_->file_names.push_back(name);
    return entry->second;
  }

  /// Without a communicator nobody can say who else has it open.
  uint32_t id_of(const FileDefinition& file, uint32_t name, const Group& group) {
    const auto next = static_cast<uint32_t>(model_->files.size());
    const auto communicator = group.communicator_map.find(file.communicator_id);
    const bool is_shared = communicator != group.communicator_map.end();
    if (is_shared) {
      // MPI_COMM_SELF of two processes that are one rank, as after a restart, is the same.
      const bool is_own =
          model_->communicators[communicator->second].kind == CommunicatorKind::kSelf;
      const auto [entry, is_new] =
          ids_.try_emplace({file.identity, is_own ? name : kAnyName, communicator->second}, next);
      if (!is_new) {
        model_->files[entry->second].mode |= file.mode;
        return entry->second;
      }
    }
    GlobalFile& made = model_->files.emplace_back();
    made.name = name;
    made.mode = file.mode;
    if (is_shared) made.communicator = communicator->second;
    return next;
  }

  Model* model_;
  std::map<std::string, uint32_t> names_;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t> ids_;  ///< by communicator
};

}  // namespace

void build_files(JobModel* parts) {
  FileUnifier unifier(&parts->model);
  for (Group& group : parts->model.groups) {
    if (group.process != nullptr) unifier.add_files(&group);
  }
}

}  // namespace aon::writers
