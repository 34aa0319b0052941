// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey {

// By which samples an update divides the sum of a row's pushes: SparseRows.round_mean of
// table.proto.
enum class RoundMean {
  kOfAllPushes,  // those of all its pushes, as in a dense table
  kOfHolders,    // those of its pushes that hold the row; only of tables under LOCAL
};

}  // namespace covey
