// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/examples/factorization/samples.h"

namespace covey::factorization {

// Reads a file in the format of LibSVM, plain or compressed by gzip: in each line a label, then
// features as INDEX:VALUE, and maybe a comment that begins with #. Indices are any 64-bit numbers,
// in any order, and are the keys. Labels above 0 are 1; the others (0 and -1) are 0. Empty lines
// are skipped. Errors name file, line and column. NOT_FOUND: the file cannot be opened. DATA_LOSS:
// it is damaged or malformed, or a number is not finite, or it has no sample.
absl::StatusOr<Samples> ReadLibsvm(const std::string& path);

}  // namespace covey::factorization
