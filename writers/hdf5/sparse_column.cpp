#include "writers/hdf5/sparse_column.h"

#include <algorithm>

namespace aon::writers::hdf5 {

void SparseColumn::set(hsize_t row, double value) {
  if (!values_.empty() && values_.back().first == row) {
    values_.back().second = value;
  } else {
    values_.emplace_back(row, value);
  }
}

std::vector<double> SparseColumn::take_chunk(hsize_t first, hsize_t rows) {
  std::vector<double> chunk(rows, *fill_);
  for (const auto& [row, value] : values_) chunk[row - first] = value;
  values_ = {};  // other columns need the memory
  return chunk;
}

void SparseColumn::spill() {
  if (values_.empty()) return;
  const hsize_t first = values_.front().first / kChunkRows * kChunkRows;
  const std::vector<double> chunk = take_chunk(first, kChunkRows);
  dataset_.extend(first);
  dataset_.append(element_type<double>().memory, chunk.data(), kChunkRows);
}

void SparseColumn::finish(hsize_t rows) {
  const bool is_whole = dataset_.rows() == 0 && rows <= kChunkRows;
  if (is_whole) {
    const std::vector<double> all = take_chunk(0, rows);
    dataset_.finish(element_type<double>().memory, all.data(), rows);
    return;
  }
  const hsize_t first = values_.empty() ? rows : values_.front().first / kChunkRows * kChunkRows;
  const std::vector<double> chunk = take_chunk(first, std::min(kChunkRows, rows - first));
  dataset_.extend(first);
  dataset_.append(element_type<double>().memory, chunk.data(), chunk.size());
}

}  // namespace aon::writers::hdf5
