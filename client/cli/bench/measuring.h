// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/bench_result.h"

namespace covey::cli {

// Measures those of `options.blocks` that use tables on the cluster at `options.scheduler`, over
// its transport, which must be the first of `options.transports`. `progress` takes a line per
// finished figure. Blocks until all is measured; the limits' partner processes end with it.
absl::StatusOr<BenchResult> MeasureCluster(const BenchOptions& options,
                                           const std::function<void(absl::string_view)>& progress);

// Measures the other blocks, which need no cluster or start processes of their own, over all
// transports.
absl::StatusOr<BenchResult> MeasureWithoutCluster(
    const BenchOptions& options, const std::function<void(absl::string_view)>& progress);

}  // namespace covey::cli
