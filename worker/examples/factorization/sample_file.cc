// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/sample_file.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::factorization {

absl::StatusOr<Samples> ReadSamples(const std::string& path, AddLine add,
                                    absl::string_view nothing) {
  COVEY_ASSIGN_OR_RETURN(examples::LineReader lines, examples::LineReader::OpenFile(path));
  Samples samples;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const std::optional<absl::string_view> line, lines.Next());
    if (!line) break;
    COVEY_RETURN_IF_ERROR(add(lines, *line, samples));
  }
  if (samples.size() > 0) return samples;
  return absl::DataLossError(absl::StrCat("reading ", path, ": ", nothing));
}

}  // namespace covey::factorization
