// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/examples/factorization/samples.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {

// Adds what the newest line says.
using AddLine = absl::Status (*)(const examples::LineReader& lines, absl::string_view line,
                                 Samples& samples);

// Reads the samples of a file line by line, plain or compressed by gzip. DATA_LOSS with `nothing`:
// there is none. Other errors are those of LineReader and `add`.
absl::StatusOr<Samples> ReadSamples(const std::string& path, AddLine add,
                                    absl::string_view nothing);

}  // namespace covey::factorization
