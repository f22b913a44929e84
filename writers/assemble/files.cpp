// Files of the model: each name once, and what the members of a communicator opened together once,
// by the name that the first of them gave it.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

/// What members opened together have one identity, and each member gives it once. Where one rank
/// has two, two programs ran one after the other and neither said which launch it was of: theirs
/// are told apart by their names.
class FileUnifier {
 public:
  explicit FileUnifier(Model* model) : model_(model) {}

  /// Of all groups before the first number_files().
  void note_files(const Group& group) {
    for (const auto& [local, file] : group.process->files) {
      if (Opening* opening = opening_of(file, group); opening != nullptr) {
        Spelling& spelling = opening->spellings[file.name];
        spelling.mode |= file.definition.mode;
        spelling.ranks.insert(rank_of(file, group));
      }
    }
  }

  void number_files(Group* group) {
    for (const auto& [local, file] : group->process->files) {
      group->file_name_map[local] = name_of(file.name);
      if (is_open(file)) group->file_map[local] = number_of(file, *group);
    }
  }

 private:
  using Ranks = std::set<uint32_t>;

  struct Spelling {
    uint32_t mode = 0;
    Ranks ranks;
    std::optional<uint32_t> file;  ///< once it is numbered
  };
  struct MemberFile {
    uint32_t number = 0;
    Ranks ranks;
  };
  struct Opening {
    std::map<std::string, Spelling> spellings;
    std::vector<MemberFile> files;  ///< numbered so far
  };

  static bool is_open(const spool::File& file) {
    return (file.definition.mode & (kFileReads | kFileWrites)) != 0;
  }
  static uint32_t rank_of(const spool::File& file, const Group& group) {
    const auto found = group.process->communicators.find(file.definition.communicator_id);
    return found != group.process->communicators.end() ? found->second.definition.rank : group.id;
  }

  /// Null: without a communicator nobody can say who else has it open.
  Opening* opening_of(const spool::File& file, const Group& group) {
    const auto communicator = group.communicator_map.find(file.definition.communicator_id);
    const bool is_shared = is_open(file) && communicator != group.communicator_map.end();
    return is_shared ? &openings_[{file.definition.identity, communicator->second}] : nullptr;
  }

  uint32_t name_of(const std::string& name) {
    const auto next = static_cast<uint32_t>(model_->file_names.size());
    const auto [entry, is_new] = names_.try_emplace(name, next);
    if (is_new) model_->file_names.push_back(name);
    return entry->second;
  }

  uint32_t make(const spool::File& file, uint32_t mode) {
    GlobalFile& made = model_->files.emplace_back();
    made.name = name_of(file.name);
    made.mode = mode;
    return static_cast<uint32_t>(model_->files.size()) - 1;
  }

  uint32_t number_of(const spool::File& file, const Group& group) {
    Opening* opening = opening_of(file, group);
    if (opening == nullptr) return make(file, file.definition.mode);
    Spelling& spelling = opening->spellings.at(file.name);
    if (!spelling.file) spelling.file = place_of(file, spelling, group, opening);
    return *spelling.file;
  }

  /// The first file of the opening that none of these members has opened by another name.
  uint32_t place_of(const spool::File& file, const Spelling& spelling, const Group& group,
                    Opening* opening) {
    const uint32_t communicator = group.communicator_map.at(file.definition.communicator_id);
    for (MemberFile& known : opening->files) {
      const bool is_taken =
          std::any_of(spelling.ranks.begin(), spelling.ranks.end(),
                      [&](uint32_t rank) { return known.ranks.count(rank) != 0; });
      if (is_taken) continue;
      known.ranks.insert(spelling.ranks.begin(), spelling.ranks.end());
      model_->files[known.number].mode |= spelling.mode;
      return known.number;
    }
    const uint32_t made = make(file, spelling.mode);
    model_->files[made].communicator = communicator;
    opening->files.push_back({made, spelling.ranks});
    return made;
  }

  Model* model_;
  std::map<std::string, uint32_t> names_;
  std::map<std::pair<uint64_t, uint32_t>, Opening> openings_;  ///< by identity and communicator
};

}  // namespace

void build_files(JobModel* parts) {
  FileUnifier unifier(&parts->model);
  for (const Group& group : parts->model.groups) {
    if (group.process != nullptr) unifier.note_files(group);
  }
  for (Group& group : parts->model.groups) {
    if (group.process != nullptr) unifier.number_files(&group);
  }
}

}  // namespace aon::writers
