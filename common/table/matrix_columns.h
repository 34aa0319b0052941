// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/limits.h"
#include "proto/table.pb.h"

namespace covey {

// Columns of the matrix that a table's gradients in factors are for (MatrixRange in
// common/tensor/outer_product.h): its rows are the first dimension of the shape, its columns the
// product of the others. 0 = the table takes no factors: it is sparse, has one dimension, or is one
// of vectors.
inline uint64_t MatrixColumns(const proto::TableSpec& spec) {
  if (spec.has_sparse() || spec.shape_size() < 2 ||
      spec.optimizer().kind() == proto::Optimizer::VECTORS) {
    return 0;
  }
  uint64_t columns = 1;
  for (int i = 1; i < spec.shape_size(); ++i) {
    const uint64_t extent = spec.shape(i);
    if (extent == 0 || columns > kTableElementsMax / extent) return 0;
    columns *= extent;
  }
  return columns;
}

}  // namespace covey
