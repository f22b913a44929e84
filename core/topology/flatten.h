/// hwloc's tree as the flat model of topology.h.
#pragma once

#include <vector>

#include "core/topology/topology.h"

namespace aon::topology {

std::vector<Object> flatten(hwloc_topology* topology);

}  // namespace aon::topology
