#include "writers/hdf5/column.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstdio>

#include "writers/hdf5/text.h"

namespace aon::writers::hdf5 {

namespace {

/// How `rows` texts are handed over. HDF5 converts them in buffers of 1 MiB otherwise, which it
/// makes and fills with zeros at each write.
Handle text_transfer(hsize_t rows) {
  constexpr hsize_t kMostBytes = 1 << 20;  // HDF5's own
  const hsize_t bytes = rows * std::max(sizeof(char*), sizeof(hvl_t));
  Handle transfer(checked(H5Pcreate(H5P_DATASET_XFER), "data transfer"));
  checked(H5Pset_buffer(transfer.get(), std::min(bytes, kMostBytes), nullptr, nullptr),
          "data transfer");
  return transfer;
}

}  // namespace

constexpr unsigned kDeflateLevel = 1;  // higher levels cost twice the time for 5 % of the size

template <>
ElementType element_type<uint64_t>() {
  return {H5T_NATIVE_UINT64, H5T_STD_U64LE};
}
template <>
ElementType element_type<int64_t>() {
  return {H5T_NATIVE_INT64, H5T_STD_I64LE};
}
template <>
ElementType element_type<uint32_t>() {
  return {H5T_NATIVE_UINT32, H5T_STD_U32LE};
}
template <>
ElementType element_type<int32_t>() {
  return {H5T_NATIVE_INT32, H5T_STD_I32LE};
}
template <>
ElementType element_type<uint8_t>() {
  return {H5T_NATIVE_UINT8, H5T_STD_U8LE};
}
template <>
ElementType element_type<double>() {
  return {H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE};
}

Dataset::Dataset(hid_t group, std::string name, hid_t file_type, hsize_t width, const void* fill,
                 ColumnText text)
    : group_(group),
      name_(std::move(name)),
      file_type_(file_type),
      width_(width),
      fill_(fill),
      text_(std::move(text)) {}

void Dataset::create(std::optional<hsize_t> rows) {
  const int rank = width_ == 1 ? 1 : 2;
  const hsize_t size[] = {rows.value_or(0), width_};
  const hsize_t max_size[] = {rows.value_or(H5S_UNLIMITED), width_};
  const bool is_text = H5Tis_variable_str(file_type_) > 0;
  const hsize_t row_bytes = H5Tget_size(file_type_) * width_;
  const Handle space(checked(H5Screate_simple(rank, size, max_size), "data space"));
  const Handle creation(checked(H5Pcreate(H5P_DATASET_CREATE), "dataset creation"));
  if (!rows || (!is_text && *rows * row_bytes > kPlainBytes)) {
    const hsize_t most = is_text ? kTextChunkRows : std::max<hsize_t>(1, kChunkRows / width_);
    const hsize_t chunk[] = {std::min(rows.value_or(most), most), width_};
    checked(H5Pset_chunk(creation.get(), rank, chunk), "chunks");
    if (!is_text) {
      checked(H5Pset_shuffle(creation.get()), "shuffle");
      checked(H5Pset_deflate(creation.get(), kDeflateLevel), "deflate");
    }
  }
  if (fill_ != nullptr) {
    checked(H5Pset_fill_value(creation.get(), file_type_, fill_), "fill value");
  }
  // Chunks are written whole, nearly all. HDF5 would keep 1 MiB of them for each dataset.
  const Handle access(checked(H5Pcreate(H5P_DATASET_ACCESS), "dataset access"));
  checked(H5Pset_chunk_cache(access.get(), 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT), "chunk cache");
  dataset_ = Handle(checked(H5Dcreate2(group_, name_.c_str(), file_type_, space.get(), H5P_DEFAULT,
                                       creation.get(), access.get()),
                            name_.c_str()));
  if (!text_.units.empty()) set_attribute(dataset_.get(), "units", text_.units);
  if (!text_.long_name.empty()) set_attribute(dataset_.get(), "long_name", text_.long_name);
  rows_ = rows.value_or(0);
}

void Dataset::make(hsize_t rows) {
  // One without rows stays growable, as netCDF takes dimensions of no length.
  if (rows == 0) {
    create(std::nullopt);
  } else {
    create(rows);
  }
}

void Dataset::extend(hsize_t rows) {
  if (!dataset_.is_open()) create(std::nullopt);
  const hsize_t size[] = {rows, width_};
  checked(H5Dset_extent(dataset_.get(), size), "cannot grow a column");
  rows_ = rows;
}

void Dataset::append(hid_t memory_type, const void* data, hsize_t rows) {
  if (rows == 0) return;
  const hsize_t first = rows_;
  extend(rows_ + rows);
  write(memory_type, data, first, rows);
}

void Dataset::finish(hid_t memory_type, const void* data, hsize_t rows) {
  if (dataset_.is_open()) {
    append(memory_type, data, rows);
    return;
  }
  make(rows);
  if (rows > 0) write(memory_type, data, 0, rows);
}

void Dataset::write(hid_t memory_type, const void* data, hsize_t first, hsize_t rows) {
  const int rank = width_ == 1 ? 1 : 2;
  const hsize_t start[] = {first, 0};
  const hsize_t count[] = {rows, width_};
  const Handle file_space(checked(H5Dget_space(dataset_.get()), "data space"));
  checked(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr),
          "data space");
  const Handle memory_space(checked(H5Screate_simple(rank, count, nullptr), "data space"));
  const Handle transfer =
      H5Tis_variable_str(file_type_) > 0 ? text_transfer(rows * width_) : Handle();
  checked(H5Dwrite(dataset_.get(), memory_type, memory_space.get(), file_space.get(),
                   transfer.is_open() ? transfer.get() : H5P_DEFAULT, data),
          "cannot write a column");
}

TextColumn::TextColumn(hid_t group, const std::string& name, const ColumnText& text)
    : dataset_(group, name, type_.get(), 1, nullptr, text) {}

void TextColumn::append(std::string_view value) {
  buffer_.push_back(clean_text(value));
  if (buffer_.size() < kChunkRows) return;
  dataset_.append(type_.get(), pointers().data(), buffer_.size());
  buffer_.clear();
}

void TextColumn::finish() {
  dataset_.finish(type_.get(), pointers().data(), buffer_.size());
  buffer_.clear();
}

std::vector<const char*> TextColumn::pointers() const {
  std::vector<const char*> data;
  for (const std::string& value : buffer_) data.push_back(value.c_str());
  return data;
}

Table::Table(hid_t parent, const std::string& path, const char* description)
    : group_(create_group(parent, path)) {
  set_attribute(group_.get(), "NX_class", "NXcollection");
  set_attribute(group_.get(), "description", description);
}

TextColumn& Table::add_text(const char* name, const ColumnText& text) {
  auto column = std::make_unique<TextColumn>(group_.get(), name, text);
  TextColumn& reference = *column;
  columns_.push_back(std::move(column));
  return reference;
}

void Table::finish() {
  if (columns_.empty()) return;
  for (const auto& column : columns_) column->finish();
  const hsize_t rows = columns_.front()->rows();
  // netCDF-4's mark of a dimension without coordinate values: this name, and no data written.
  char mark[80];
  snprintf(mark, sizeof(mark), "This is a netCDF dimension but not a netCDF variable. %10llu",
           static_cast<unsigned long long>(rows));
  Dataset dimension(group_.get(), "row", H5T_IEEE_F32BE, 1, nullptr);
  dimension.make(rows);
  checked(H5DSset_scale(dimension.id(), mark), "dimension");
  for (const auto& column : columns_) {
    checked(H5DSattach_scale(column->id(), dimension.id(), 0), "dimension");
  }
}

}  // namespace aon::writers::hdf5
