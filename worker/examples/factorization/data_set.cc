// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/data_set.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/examples/factorization/criteo_reader.h"
#include "worker/examples/factorization/libsvm_reader.h"
#include "worker/examples/factorization/package_index.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {
namespace {

using examples::LineReader;

absl::StatusOr<std::vector<Package>> ReadIndex(const std::string& file) {
  if (!file.empty()) {
    COVEY_ASSIGN_OR_RETURN(LineReader lines, LineReader::OpenFile(file));
    return ReadPackages(lines);
  }
  COVEY_ASSIGN_OR_RETURN(LineReader lines, LineReader::OpenCommand("apt-cache dumpavail"));
  absl::StatusOr<std::vector<Package>> packages = ReadPackages(lines);
  if (packages.ok()) return packages;
  return absl::Status(
      packages.status().code(),
      absl::StrCat(packages.status().message(),
                   "; it needs Debian's apt and lists that `apt-get update` gets; or "
                   "name a file Packages with --index"));
}

absl::StatusOr<DataSet> ReadFiles(const Options& options,
                                  absl::StatusOr<Samples> (*read)(const std::string&)) {
  DataSet set;
  COVEY_ASSIGN_OR_RETURN(set.training, read(options.train_file));
  COVEY_ASSIGN_OR_RETURN(set.test, read(options.test_file));
  return set;
}

}  // namespace

absl::StatusOr<DataSet> ReadData(const Options& options) {
  switch (options.source) {
    case Source::kLibsvm:
      return ReadFiles(options, ReadLibsvm);
    case Source::kCriteo:
      return ReadFiles(options, ReadCriteo);
    case Source::kDependencies:
    case Source::kRoles:
      break;
  }
  COVEY_ASSIGN_OR_RETURN(const std::vector<Package> packages, ReadIndex(options.index));
  return options.source == Source::kDependencies
             ? DependencySamples(packages, options.evaluate, options.seed)
             : RoleSamples(packages, options.evaluate);
}

}  // namespace covey::factorization
