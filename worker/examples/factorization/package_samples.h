// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "worker/examples/factorization/package_index.h"
#include "worker/examples/factorization/samples.h"

namespace covey::factorization {

// Samples of an index of packages. A tenth of the source packages is held out for the test, and
// another tenth for validation: all packages of a source are on one side.
enum class HeldOut { kValidation, kTest };

// Which package depends on which: for each dependency on a package of another source two samples
// with targets that it does not depend on, drawn from all dependencies, so that it says little how
// popular a target is. Features of both sides: words of the description, parts of the name,
// section, maintainer, source; and the target itself. INVALID_ARGUMENT: there are none.
absl::StatusOr<DataSet> DependencySamples(std::span<const Package> packages, HeldOut test,
                                          uint64_t seed);

// Which package is a program, of those whose tags name a role. The features above, and the
// dependencies. INVALID_ARGUMENT: none has such a tag.
absl::StatusOr<DataSet> RoleSamples(std::span<const Package> packages, HeldOut test);

}  // namespace covey::factorization
