#include "core/agent/topology_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/spool/files.h"
#include "core/topology/machine.h"

namespace aon::agent {
namespace {

constexpr char kHwlocRemedy[] = "lstopo --of xml FILE writes one; unset HWLOC_XMLFILE";

/// Whole, or not at all: of a piece nobody knows that more was to come.
Status write_whole(const std::string& path, const std::string& text) {
  auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file) return file.error();
  Status status = write_all(file->get(), text.data(), text.size());
  if (!status) ::unlink(path.c_str());
  return status;
}

}  // namespace

void TopologyFile::write() {
  if (!is_loaded_) load();
  if (text_.empty()) return;
  const Status status = write_whole(config_.folder + "/" + spool::kTopologyFile, text_);
  if (status) {
    text_ = {};
    if (is_failure_told_) define(problem_, problem_.empty() ? "" : kHwlocRemedy);
  } else if (!is_failure_told_) {
    is_failure_told_ = true;
    define(std::string("cannot write ") + spool::kTopologyFile + ": " + status.error().message, "");
  }
}

void TopologyFile::load() {
  is_loaded_ = true;
  problem_ = config_.topology_problem;
  // An earlier agent of this node may have been killed while it wrote.
  const auto there =
      read_text_file(config_.folder + "/" + spool::kTopologyFile, spool::kMaxTopologyBytes);
  if (!there || !spool::topology_xml(*there)) {
    const auto xml = topology::machine_xml(config_.runtime_folder, config_.allowed_cpus);
    if (xml) text_ = spool::topology_file(*xml);
    if (!xml) problem_ = xml.error().message;
  }
  if (!problem_.empty()) define(problem_, kHwlocRemedy);
}

void TopologyFile::define(const std::string& problem, const char* remedy) {
  ProviderDefinition state{};
  state.state = problem.empty() ? ProviderState::kOn : ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {"topology", problem, remedy});
  AON_LOG_WARNING("topology: %s", problem.empty() ? "written after all" : problem.c_str());
}

}  // namespace aon::agent
