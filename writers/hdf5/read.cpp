#include "writers/hdf5/read.h"

#include <filesystem>
#include <system_error>

namespace aon::writers::hdf5 {
namespace {

constexpr size_t kMostRows = size_t{1} << 26;  ///< far above what the writer makes
constexpr hsize_t kMostDeflated = 1100;        ///< deflate makes no less of so many bytes

/// Where HDF5 looks for the file of an external link: at the next place where it cannot read one.
std::vector<std::filesystem::path> places(const std::filesystem::path& from,
                                          const std::filesystem::path& to) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(from, ignored);
  // An absolute path is left for what has its last name.
  const std::filesystem::path name = to.is_absolute() ? to.filename() : to;
  return {to, from.parent_path() / name, name, real.parent_path() / name};
}

/// Before HDF5 follows an external link: nothing of that name may hold it up.
herr_t look_at_link(const char* from, const char*, const char* to, const char*, unsigned* flags,
                    hid_t, void*) {
  *flags = H5F_ACC_RDONLY;
  for (const std::filesystem::path& place : places(from, to)) {
    std::error_code ignored;
    const std::filesystem::file_status found = std::filesystem::status(place, ignored);
    const bool is_harmless = !std::filesystem::exists(found) ||
                             std::filesystem::is_regular_file(found) ||
                             std::filesystem::is_directory(found);
    if (!is_harmless) return -1;
  }
  return 0;  // HDF5 says which file is not there
}

/// How something is opened. `kind`: a class of property lists.
Handle access(hid_t kind) {
  Handle list(checked(H5Pcreate(kind), "access"));
  checked(H5Pset_elink_cb(list.get(), look_at_link, nullptr), "access");
  return list;
}

/// `is_sparse`: rows without a value need not be in the file.
size_t row_count(hid_t dataset, const std::string& path, bool is_sparse) {
  const Handle creation(checked(H5Dget_create_plist(dataset), path.c_str()));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) != 0)
    fail(path + ": its rows are in another file");
  const Handle space(checked(H5Dget_space(dataset), "data space"));
  const auto count =
      static_cast<size_t>(checked(H5Sget_simple_extent_npoints(space.get()), "size of a column"));
  if (count > kMostRows) fail(path + ": more rows than a job has");
  const Handle type(checked(H5Dget_type(dataset), path.c_str()));
  const hsize_t least_bytes = count * H5Tget_size(type.get()) / kMostDeflated;
  if (!is_sparse && H5Dget_storage_size(dataset) < least_bytes)
    fail(path + ": more rows than are in the file");
  return count;
}

template <class T>
std::vector<T> read_column(hid_t parent, const std::string& path, hid_t memory_type,
                           bool is_sparse = false) {
  const Handle dataset = open_dataset(parent, path);
  std::vector<T> values(row_count(dataset.get(), path, is_sparse));
  checked(H5Dread(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
          path.c_str());
  return values;
}

/// Of one value: there is room for no more.
Handle open_attribute(hid_t object, const char* name) {
  Handle attribute(checked(H5Aopen(object, name, H5P_DEFAULT), name));
  const Handle space(checked(H5Aget_space(attribute.get()), name));
  if (H5Sget_simple_extent_npoints(space.get()) != 1) fail(std::string(name) + ": not one value");
  return attribute;
}

}  // namespace

bool exists(hid_t parent, const std::string& path) {
  return H5Lexists(parent, path.c_str(), access(H5P_LINK_ACCESS).get()) > 0;
}

Handle open_group(hid_t parent, const std::string& path) {
  return Handle(
      checked(H5Gopen2(parent, path.c_str(), access(H5P_GROUP_ACCESS).get()), path.c_str()));
}

Handle open_dataset(hid_t parent, const std::string& path) {
  return Handle(
      checked(H5Dopen2(parent, path.c_str(), access(H5P_DATASET_ACCESS).get()), path.c_str()));
}

std::vector<int64_t> read_integers(hid_t parent, const std::string& path) {
  return read_column<int64_t>(parent, path, H5T_NATIVE_INT64);
}

std::vector<double> read_numbers(hid_t parent, const std::string& path) {
  return read_column<double>(parent, path, H5T_NATIVE_DOUBLE, true);
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
  const Handle attribute = open_attribute(object, name);
  checked(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), name);
  return value;
}

std::string read_text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Handle attribute = open_attribute(object, name);
  const Handle type = string_type();
  char* text = nullptr;
  checked(H5Aread(attribute.get(), type.get(), &text), name);
  std::string value(text == nullptr ? "" : text);
  H5free_memory(text);
  return value;
}

std::vector<std::string> names_in(hid_t parent, const std::string& path) {
  std::vector<std::string> names;
  const Handle group = open_group(parent, path);
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
