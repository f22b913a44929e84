/// What the definitions of MPI have beyond what all kinds share (aon/definition.h).
/// Owner: nobody; this header is layout. Thread, cost: none. Depends on nothing.
#pragma once

#include <cstdint>

namespace aon {

/// Byte of CommunicatorDefinition::reserved: 1 where processes of several worlds are in it
/// (spawned, connected), or it was made from one that has such. Members of another world are in
/// another job, or in none: nobody here tells their places. Who does not know the byte ignores it.
constexpr uint32_t kOfWorldsByte = 0;

}  // namespace aon
