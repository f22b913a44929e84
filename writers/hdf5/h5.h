/// Thin C++ over the HDF5 C library: owned handles, attributes, and growing columns. Errors inside
/// the writer are H5Error exceptions that carry HDF5's own words; guard() turns them into a Status
/// at the border.
///
/// Conventions of every file: format of HDF5 1.8 (any reader of the last ten years), creation order
/// tracked (netCDF-4 wants it), strings of variable length in UTF-8 (h5py and netCDF read them as
/// text), columns chunked, shuffled and deflated.
/// Thread: one; the library is not thread-safe.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace aon::writers::hdf5 {

class H5Error : public std::exception {
 public:
  explicit H5Error(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// Throws with `what` and HDF5's reason.
[[noreturn]] void fail(const std::string& what);

/// Makes sure HDF5 leaves nothing to do at exit: a file that could not be closed on a full disk
/// would be tried again there, with much noise. To be called before anything else.
void use_library();

/// Returns `id`, or throws when it is negative.
template <class Id>
Id checked(Id id, const char* what) {
  if (id < 0) fail(what);
  return id;
}

/// Owns one HDF5 id of any kind.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  hid_t get() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

/// Keeps HDF5 from printing its error stack while it lives.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

/// Runs `call` and returns what it threw as a Status about `path`.
template <class Call>
Status guard(const std::filesystem::path& path, Call call) {
  const Quiet quiet;
  try {
    call();
  } catch (const std::exception& e) {
    return Error{Code::kIo, path.string() + ": " + e.what()};
  }
  return {};
}

Handle create_file(const std::filesystem::path& path);
Handle open_file(const std::filesystem::path& path);  ///< read-only

/// Creates `path` below `parent` with all groups on the way.
Handle create_group(hid_t parent, const std::string& path);

/// Makes `path` below `parent` stand for `object` of another file, with all groups on the way.
/// Readers look for a relative `file` beside the file that has the link.
void create_external_link(hid_t parent, const std::string& path, const std::string& file,
                          const std::string& object);

Handle string_type();
void set_attribute(hid_t object, const char* name, std::string_view value);
void set_attribute(hid_t object, const char* name, const std::vector<std::string>& values);
void set_attribute(hid_t object, const char* name, int64_t value);
void set_attribute(hid_t object, const char* name, double value);

}  // namespace aon::writers::hdf5
