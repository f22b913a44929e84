/// Texts in the file: names, times and numbers as HDF5, NeXus and netCDF readers want them.
/// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aon::writers::hdf5 {

/// UTF-8 without NUL: what is not becomes '?'.
std::string clean_text(std::string_view text);

/// A name that is accepted as that of a group or data set.
std::string object_name(std::string_view text);

/// "rank_07": as many digits as the largest number below `count` needs.
std::string numbered(const std::string& what, size_t number, size_t count);

}  // namespace aon::writers::hdf5
