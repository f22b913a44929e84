#include "writers/hdf5/read.h"

namespace aon::writers::hdf5 {
namespace {

constexpr size_t kMostRows = size_t{1} << 26;  ///< far above what the writer makes

Handle open_dataset(hid_t parent, const std::string& path) {
  return Handle(checked(H5Dopen2(parent, path.c_str(), H5P_DEFAULT), path.c_str()));
}

size_t row_count(hid_t dataset) {
  const Handle space(checked(H5Dget_space(dataset), "data space"));
  return static_cast<size_t>(
      checked(H5Sget_simple_extent_npoints(space.get()), "size of a column"));
}

template <class T>
std::vector<T> read_column(hid_t parent, const std::string& path, hid_t memory_type) {
  const Handle dataset = open_dataset(parent, path);
  const size_t count = row_count(dataset.get());
  if (count > kMostRows) fail(path + ": more rows than a job has");
  std::vector<T> values(count);
  checked(H5Dread(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
          path.c_str());
  return values;
}

}  // namespace

bool exists(hid_t parent, const std::string& path) {
  return H5Lexists(parent, path.c_str(), H5P_DEFAULT) > 0;
}

std::vector<int64_t> read_integers(hid_t parent, const std::string& path) {
  return read_column<int64_t>(parent, path, H5T_NATIVE_INT64);
}

std::vector<double> read_numbers(hid_t parent, const std::string& path) {
  return read_column<double>(parent, path, H5T_NATIVE_DOUBLE);
}

std::vector<std::string> read_texts(hid_t parent, const std::string& path) {
  const Handle type = string_type();
  std::vector<char*> raw = read_column<char*>(parent, path, type.get());
  std::vector<std::string> texts;
  for (char* text : raw) {
    texts.emplace_back(text == nullptr ? "" : text);
    H5free_memory(text);
  }
  return texts;
}

int64_t read_integer_attribute(hid_t object, const char* name) {
  int64_t value = 0;
  const Handle attribute(checked(H5Aopen(object, name, H5P_DEFAULT), name));
  checked(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), name);
  return value;
}

std::string read_text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Handle attribute(checked(H5Aopen(object, name, H5P_DEFAULT), name));
  const Handle type = string_type();
  char* text = nullptr;
  checked(H5Aread(attribute.get(), type.get(), &text), name);
  std::string value(text == nullptr ? "" : text);
  H5free_memory(text);
  return value;
}

std::vector<std::string> names_in(hid_t parent, const std::string& path) {
  std::vector<std::string> names;
  const Handle group(checked(H5Gopen2(parent, path.c_str(), H5P_DEFAULT), path.c_str()));
  hsize_t index = 0;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->push_back(name);
    return 0;
  };
  checked(H5Literate(group.get(), H5_INDEX_CRT_ORDER, H5_ITER_INC, &index, collect, &names),
          path.c_str());
  return names;
}

}  // namespace aon::writers::hdf5
