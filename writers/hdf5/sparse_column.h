/// A column of numbers of which many rows have no value: those have the fill value, and cost
/// nothing. Of a series with a thousand metrics each row has one or few.
///
/// The column is written chunk by chunk, and a chunk without a value never. A chunk is put together
/// when the rows are past it; until then only the values are kept.
///
/// Owner: the series.   Thread: one.   Cost: 16 bytes per value of one chunk are buffered; each
/// chunk with values is written once.   Errors: H5Error.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "writers/hdf5/column.h"

namespace aon::writers::hdf5 {

class SparseColumn {
 public:
  /// `fill` lives as long as the column.
  SparseColumn(hid_t group, const std::string& name, const ColumnText& text, const double* fill)
      : dataset_(group, name, element_type<double>().file, 1, fill, text), fill_(fill) {}

  /// Sets the value of a row, which is not before the one that was set last, and in the same chunk
  /// unless spill() came between them.
  void set(hsize_t row, double value);
  /// Writes what is buffered; the rows that follow are in later chunks.
  void spill();
  /// Writes what is buffered. The column has `rows` rows in all.
  void finish(hsize_t rows);
  hid_t id() const { return dataset_.id(); }  ///< of the dataset, once it is finished

 private:
  /// The values of the chunk that begins at `first`, of which there are `rows`.
  std::vector<double> take_chunk(hsize_t first, hsize_t rows);

  Dataset dataset_;
  const double* fill_;
  std::vector<std::pair<hsize_t, double>> values_;  ///< of one chunk, by row
};

}  // namespace aon::writers::hdf5
