/// Columns: one-dimensional datasets that grow at their end, and the table they make up. A table is
/// a group whose columns are equally long and share the dimension "row", in the way netCDF-4 marks
/// a dimension without coordinates, so that xarray opens a table as one data set.
///
/// A column gets its dataset when its first values are written. One of up to kChunkRows rows is
/// written at its end, in one piece of just its size, and deflated where that pays; a longer one
/// grows by chunks. Most columns are short: chunks of full size, padded and deflated, were half of
/// the file of a short job.
///
/// Owner: the writer.   Thread: one.   Cost: kChunkRows rows per column are buffered.
/// Errors: H5Error.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "writers/hdf5/h5.h"

namespace aon::writers::hdf5 {

constexpr hsize_t kChunkRows = 4096;
constexpr hsize_t kTextChunkRows = 256;  ///< a chunk of text holds references, and is not deflated
constexpr hsize_t kPlainBytes = 2048;    ///< a dataset up to this size is not deflated

/// HDF5 type of a column's values, in memory and (little endian) in the file.
struct ElementType {
  hid_t memory;
  hid_t file;
};
template <class T>
ElementType element_type();

struct ColumnText {
  std::string units;  ///< as CF and NeXus spell them: "ns", "bytes", "1"; "" none
  std::string long_name;
};

/// A dataset of `width` values per row (1: one-dimensional), in the file once it has values.
class Dataset {
 public:
  /// `fill` (may be null) is the value of rows that were never written. `group` stays open for as
  /// long as values are added.
  Dataset(hid_t group, std::string name, hid_t file_type, hsize_t width, const void* fill,
          ColumnText text = {});

  /// Adds rows to a dataset that may get more.
  void append(hid_t memory_type, const void* data, hsize_t rows);
  /// Adds the last rows.
  void finish(hid_t memory_type, const void* data, hsize_t rows);
  void extend(hsize_t rows);  ///< to `rows` rows; new ones have the fill value
  void make(hsize_t rows);    ///< with `rows` rows of the fill value, for good
  hsize_t rows() const { return rows_; }
  hid_t id() const { return dataset_.get(); }  ///< negative before there are values

 private:
  void create(std::optional<hsize_t> rows);  ///< no number: it grows
  void write(hid_t memory_type, const void* data, hsize_t first, hsize_t rows);

  hid_t group_;
  std::string name_;
  hid_t file_type_;
  hsize_t width_;
  const void* fill_;
  ColumnText text_;
  Handle dataset_;
  hsize_t rows_ = 0;
};

class AnyColumn {
 public:
  virtual ~AnyColumn() = default;
  virtual void finish() = 0;  ///< writes what is buffered, the last rows
  virtual hsize_t rows() const = 0;
  virtual hid_t id() const = 0;  ///< of the dataset, once it is finished
};

/// A buffered column of numbers.
template <class T, size_t kWidth = 1>
class Column : public AnyColumn {
 public:
  Column(hid_t group, const std::string& name, const ColumnText& text)
      : dataset_(group, name, element_type<T>().file, kWidth, nullptr, text) {}

  void append(T value) {
    buffer_.push_back(value);
    if (buffer_.size() >= kChunkRows * kWidth) spill();
  }
  void append(const std::array<T, kWidth>& values) {
    buffer_.insert(buffer_.end(), values.begin(), values.end());
    if (buffer_.size() >= kChunkRows * kWidth) spill();
  }
  void finish() override {
    dataset_.finish(element_type<T>().memory, buffer_.data(), buffer_.size() / kWidth);
    buffer_.clear();
  }
  hsize_t rows() const override { return dataset_.rows() + buffer_.size() / kWidth; }
  hid_t id() const override { return dataset_.id(); }

 private:
  void spill() {
    dataset_.append(element_type<T>().memory, buffer_.data(), buffer_.size() / kWidth);
    buffer_.clear();
  }

  Dataset dataset_;
  std::vector<T> buffer_;
};

/// A buffered column of strings.
class TextColumn : public AnyColumn {
 public:
  TextColumn(hid_t group, const std::string& name, const ColumnText& text);

  void append(std::string_view value);
  void finish() override;
  hsize_t rows() const override { return dataset_.rows() + buffer_.size(); }
  hid_t id() const override { return dataset_.id(); }

 private:
  std::vector<const char*> pointers() const;

  Handle type_ = string_type();
  Dataset dataset_;
  std::vector<std::string> buffer_;
};

/// A group of equally long columns.
///
///     Table table(file, "messages", "point-to-point messages by sender");
///     auto& count = table.add<uint64_t>("count", {"1", "messages"});
///     count.append(3);
///     table.finish();
class Table {
 public:
  Table(hid_t parent, const std::string& path, const char* description);

  /// The reference lives as long as the table.
  template <class T, size_t kWidth = 1>
  Column<T, kWidth>& add(const char* name, const ColumnText& text = {}) {
    auto column = std::make_unique<Column<T, kWidth>>(group_.get(), name, text);
    Column<T, kWidth>& reference = *column;
    columns_.push_back(std::move(column));
    return reference;
  }
  TextColumn& add_text(const char* name, const ColumnText& text = {});

  /// Writes what is buffered and joins the columns by the dimension "row".
  void finish();

  hid_t group() const { return group_.get(); }

 private:
  Handle group_;
  std::vector<std::unique_ptr<AnyColumn>> columns_;
};

}  // namespace aon::writers::hdf5
