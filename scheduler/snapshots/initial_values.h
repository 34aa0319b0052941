// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/log.pb.h"
#include "proto/snapshot.pb.h"

namespace covey::scheduler {

// The operator's choice of a snapshot, "SNAPSHOT[,TABLE...]". Pure.
struct InitialValuesChoice {
  // The name of its folder, or "latest".
  std::string snapshot;
  // The tables that are taken; empty = all.
  std::vector<std::string> tables;

  static InitialValuesChoice Parse(absl::string_view text);
};

// What new tables of the job begin with, from this snapshot: of any job, or imported. Pure.
// NOT_FOUND: a chosen table is not in it.
absl::StatusOr<proto::InitialValues> InitialValuesOf(const InitialValuesChoice& choice,
                                                     const proto::SnapshotManifest& manifest);

}  // namespace covey::scheduler
