// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/examples/factorization/samples.h"

namespace covey::factorization {

// Reads a file as Criteo publishes clicks, plain or compressed by gzip: in each line 40 columns
// with tabs between, a label 0 or 1, 13 whole numbers, and 26 ids of up to 16 hexadecimal digits.
// An empty number or id is absent. Each id is a feature of its column, and each number one of its
// column and magnitude: floor(ln(x)^2), as the winners of Criteo's contest had it; numbers up to 2
// as they are. Errors name file, line and column. NOT_FOUND: the file cannot be opened. DATA_LOSS:
// it is damaged or malformed, or has no line.
absl::StatusOr<Samples> ReadCriteo(const std::string& path);

// The keys of a number and of an id in a column of 1 to 13 and of 1 to 26.
uint64_t CriteoNumberKey(uint64_t column, int64_t number);
uint64_t CriteoIdKey(uint64_t column, uint64_t id);

}  // namespace covey::factorization
