/// Reading back what the writer made: whole columns and names. The file may be anybody's: columns
/// take no more memory than their bytes in the file could be deflated from, and no link leads to
/// anything but a regular file, for of a pipe nobody knows when it ends.
/// Thread: one.   Errors: H5Error.
#pragma once

#include <string>
#include <vector>

#include "writers/hdf5/h5.h"

namespace aon::writers::hdf5 {

bool exists(hid_t parent, const std::string& path);
Handle open_group(hid_t parent, const std::string& path);
Handle open_dataset(hid_t parent, const std::string& path);
std::vector<int64_t> read_integers(hid_t parent, const std::string& path);
std::vector<double> read_numbers(hid_t parent, const std::string& path);
std::vector<std::string> read_texts(hid_t parent, const std::string& path);
int64_t read_integer_attribute(hid_t object, const char* name);   ///< of one value
std::string read_text_attribute(hid_t object, const char* name);  ///< "" without one

/// Names in a group, in order of creation.
std::vector<std::string> names_in(hid_t parent, const std::string& path);

}  // namespace aon::writers::hdf5
