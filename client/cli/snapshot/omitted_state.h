// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "proto/snapshot.pb.h"

namespace covey::cli {

// The state of the job at the cut that the snapshot does not hold, as far as its manifest tells;
// for users, each naming its tables. Whether workers kept rounding errors is their own choice: a
// lossy format counts as if they did.
std::vector<std::string> OmittedState(const proto::SnapshotManifest& manifest);

}  // namespace covey::cli
