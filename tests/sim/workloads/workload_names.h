// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace covey::sim {

// Names of all workloads.
inline constexpr absl::string_view kCounting = "counting";
inline constexpr absl::string_view kStaleness = "staleness";
inline constexpr absl::string_view kGroups = "groups";
inline constexpr absl::string_view kWork = "work";
inline constexpr absl::string_view kSnapshot = "snapshot";
inline constexpr absl::string_view kInitialize = "initialize";
inline constexpr absl::string_view kSparse = "sparse";
inline constexpr absl::string_view kFunctions = "functions";
inline constexpr absl::string_view kGated = "gated";
inline constexpr absl::string_view kMomentum = "momentum";
inline constexpr absl::string_view kSnapshotSparse = "snapshot:sparse";
inline constexpr absl::string_view kWorkloads[] = {
    kCounting, kStaleness,      kGroups,    kWork,  kSnapshot, kInitialize,
    kSparse,   kSnapshotSparse, kFunctions, kGated, kMomentum};

// "staleness:bsp": begins under a contract of that kind.
inline constexpr absl::string_view kContractKinds[] = {"bsp", "ssp", "async", "buffered", "local"};
// "bsp" of "staleness:bsp"; empty when the name has no kind.
absl::string_view ContractKindOf(absl::string_view name);

// Whether there is a workload of that name, which may have a contract's kind.
bool IsWorkload(absl::string_view name);

}  // namespace covey::sim
