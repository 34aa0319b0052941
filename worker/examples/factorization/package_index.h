// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {

// What an index of Debian packages says of one.
struct Package {
  std::string name;
  std::string source;  // without its version; the package's own name where none is given
  std::string section;
  std::string maintainer;
  std::string description;  // the short one
  // Names in Depends and Pre-Depends: the first of alternatives, each once, ascending.
  std::vector<std::string> depends;
  std::vector<std::string> tags;  // "role::program"
};

// Reads what `apt-cache dumpavail` prints, or a file Packages of an archive: fields in paragraphs.
// Of several packages with one name the first counts. DATA_LOSS: a line is no field, or a paragraph
// does not name its package; names the line. Other errors as LineReader.
absl::StatusOr<std::vector<Package>> ReadPackages(examples::LineReader& lines);

}  // namespace covey::factorization
