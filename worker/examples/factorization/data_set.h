// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "worker/examples/factorization/options.h"
#include "worker/examples/factorization/samples.h"

namespace covey::factorization {

// Reads the samples that options name. Errors: those of ReadPackages, ReadLibsvm and ReadCriteo,
// and of the samples made from packages; they say how the data is got.
absl::StatusOr<DataSet> ReadData(const Options& options);

}  // namespace covey::factorization
