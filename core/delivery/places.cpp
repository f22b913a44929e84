#include "core/delivery/places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/base/file.h"

namespace aon::delivery {
namespace {

constexpr int kMaxPlaces = 100;  ///< agents of one node, one after the other
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

void remove_files(int folder, const std::string& path) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error))
    unlinkat(folder, at->path().filename().c_str(), 0);
}

}  // namespace

std::string Places::holder(const Bringer& bringer) const {
  if (by_agent_.count(bringer.agent) != 0) return bringer.agent;
  for (const auto& [agent, place] : by_agent_) {
    const bool has_it_still = !place.is_told && place.spool == bringer.spool && place.spool != 0;
    if (has_it_still && place.node == bringer.node) return agent;
  }
  return "";
}

Result<UniqueFd> Places::open(const Bringer& bringer) {
  if (mkdir(spool_.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error("cannot create", spool_, errno);
  const std::string holder = this->holder(bringer);
  return holder.empty() ? open_new(bringer) : open_again(holder, bringer);
}

Result<UniqueFd> Places::open_again(const std::string& holder, const Bringer& bringer) {
  auto entry = by_agent_.extract(holder);
  entry.key() = bringer.agent;
  entry.mapped().rank_count = bringer.rank_count;
  entry.mapped().left_bytes = 0;
  entry.mapped().is_told = false;
  const std::string path = spool_ + "/" + entry.mapped().name;
  by_agent_.insert(std::move(entry));
  mkdir(path.c_str(), 0700);  // where somebody has removed it
  Result<UniqueFd> folder = open_file(path, kFolderFlags);
  if (folder) remove_files(folder->get(), path);
  return folder;
}

Result<UniqueFd> Places::open_new(const Bringer& bringer) {
  for (int number = 1; number < kMaxPlaces; ++number) {
    const std::string name =
        number == 1 ? bringer.node : bringer.node + "~" + std::to_string(number);
    const std::string path = spool_ + "/" + name;
    if (mkdir(path.c_str(), 0700) == 0) {
      by_agent_[bringer.agent] = {name, bringer.node, bringer.spool, bringer.rank_count, 0, false};
      return open_file(path, kFolderFlags);
    }
    if (errno != EEXIST) return errno_error("cannot create", path, errno);
  }
  return Error{Code::kUnavailable, "too many agents of node " + bringer.node};
}

uint64_t Places::left_bytes() const {
  uint64_t sum = 0;
  for (const auto& [agent, place] : by_agent_) sum += place.left_bytes;
  return sum;
}

uint32_t Places::rank_count() const {
  uint32_t sum = 0;
  for (const auto& [agent, place] : by_agent_) sum += place.rank_count;
  return sum;
}

}  // namespace aon::delivery
