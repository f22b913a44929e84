#include "writers/hdf5/h5.h"

#include <algorithm>

#include "writers/hdf5/text.h"

namespace aon::writers::hdf5 {
namespace {

constexpr unsigned kIndexNodeHalf = 8;

herr_t take_first_description(unsigned, const H5E_error2_t* error, void* text) {
  std::string& description = *static_cast<std::string*>(text);
  if (description.empty() && error->desc != nullptr) description = error->desc;
  return 0;
}

/// Of "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf =
/// ..." the words in quotes, and the text as it is where it has none.
std::string cause_of(const std::string& text) {
  constexpr std::string_view kBegin = "error message = '";
  const size_t at = text.find(kBegin);
  if (at == std::string::npos) return text;
  const size_t begin = at + kBegin.size();
  return text.substr(begin, text.find('\'', begin) - begin);
}

Handle scalar_space() { return Handle(checked(H5Screate(H5S_SCALAR), "attribute space")); }

/// Of links whose groups on the way are made.
Handle link_with_groups() {
  Handle links(checked(H5Pcreate(H5P_LINK_CREATE), "link creation"));
  checked(H5Pset_create_intermediate_group(links.get(), 1), "link creation");
  return links;
}

void write_attribute(hid_t object, const char* name, hid_t type, hid_t space, const void* data) {
  const Handle attribute(
      checked(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), name));
  checked(H5Awrite(attribute.get(), type, data), name);
}

}  // namespace

void fail(const std::string& what) {
  std::string reason;  // the innermost, for it names the cause
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first_description, &reason);
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  throw H5Error("HDF5: " + what + (reason.empty() ? "" : ": " + cause_of(reason)));
}

void use_library() {
  static const herr_t once = H5dont_atexit();
  (void)once;
}

Handle create_file(const std::filesystem::path& path) {
  const Handle access(checked(H5Pcreate(H5P_FILE_ACCESS), "file access"));
  checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "file format");
  const Handle creation(checked(H5Pcreate(H5P_FILE_CREATE), "file creation"));
  const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  checked(H5Pset_link_creation_order(creation.get(), order), "link order");
  checked(H5Pset_attr_creation_order(creation.get(), order), "attribute order");
  // Most columns are one chunk; the default index node has room for 64 and takes 2 KiB.
  checked(H5Pset_istore_k(creation.get(), kIndexNodeHalf), "chunk index");
  return Handle(checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
                        "cannot create the file"));
}

Handle open_file(const std::filesystem::path& path) {
  return Handle(
      checked(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "cannot open the file"));
}

Handle create_group(hid_t parent, const std::string& path) {
  const Handle links = link_with_groups();
  const Handle creation(checked(H5Pcreate(H5P_GROUP_CREATE), "group creation"));
  const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  checked(H5Pset_link_creation_order(creation.get(), order), "link order");
  checked(H5Pset_attr_creation_order(creation.get(), order), "attribute order");
  return Handle(checked(H5Gcreate2(parent, path.c_str(), links.get(), creation.get(), H5P_DEFAULT),
                        path.c_str()));
}

void create_external_link(hid_t parent, const std::string& path, const std::string& file,
                          const std::string& object) {
  checked(H5Lcreate_external(file.c_str(), object.c_str(), parent, path.c_str(),
                             link_with_groups().get(), H5P_DEFAULT),
          path.c_str());
}

Handle string_type() {
  Handle type(checked(H5Tcopy(H5T_C_S1), "string type"));
  checked(H5Tset_size(type.get(), H5T_VARIABLE), "string type");
  checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), "string type");
  return type;
}

void set_attribute(hid_t object, const char* name, std::string_view value) {
  const std::string text = clean_text(value);
  const char* data = text.c_str();
  write_attribute(object, name, string_type().get(), scalar_space().get(), &data);
}

void set_attribute(hid_t object, const char* name, const std::vector<std::string>& values) {
  std::vector<const char*> data;
  for (const std::string& value : values) data.push_back(value.c_str());
  const hsize_t count = data.size();
  const Handle space(checked(H5Screate_simple(1, &count, nullptr), "attribute space"));
  write_attribute(object, name, string_type().get(), space.get(), data.data());
}

void set_attribute(hid_t object, const char* name, int64_t value) {
  write_attribute(object, name, H5T_NATIVE_INT64, scalar_space().get(), &value);
}

void set_attribute(hid_t object, const char* name, double value) {
  write_attribute(object, name, H5T_NATIVE_DOUBLE, scalar_space().get(), &value);
}

}  // namespace aon::writers::hdf5
