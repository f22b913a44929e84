/// Who connects is a newcomer until it has proved to know the token. Newcomers take no places from
/// those who have: there are at most kMaxNewcomers of them, and the oldest one goes for the next.
/// Thread: the connections'.   Cost: a look at each connection, when somebody connects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace aon::cluster {

constexpr size_t kMaxNewcomers = 64;

/// Which of `connections`, a map, goes for somebody who comes now; end(): there is room.
/// `newcomer_since(connection)`: a time as std::optional<int64_t>, nullopt for one that is none.
template <class Map, class NewcomerSince>
typename Map::iterator newcomer_to_drop(Map& connections, NewcomerSince newcomer_since) {
  size_t count = 0;
  auto oldest = connections.end();
  std::optional<int64_t> since;
  for (auto one = connections.begin(); one != connections.end(); ++one) {
    const std::optional<int64_t> came = newcomer_since(one->second);
    if (!came) continue;
    ++count;
    if (since && *since <= *came) continue;
    since = came;
    oldest = one;
  }
  return count >= kMaxNewcomers ? oldest : connections.end();
}

}  // namespace aon::cluster
