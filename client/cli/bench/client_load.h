// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/figure.h"
#include "client/parameter_client.h"

namespace covey::cli {

// Duration and repetitions of the measurements of `covey bench`.
struct LoadOptions {
  std::vector<uint64_t> sizes = {4096, 1 << 20, 16 << 20, 64 << 20};
  int repetitions = 5;
  // Each repetition runs at least for this duration.
  absl::Duration duration = absl::Milliseconds(400);
  // Round trips of 64 bytes per repetition.
  int round_trips = 2000;
  // Each figure is measured once per entry, with tables of this many replicas, in turns; 1 = not
  // replicated.
  std::vector<uint32_t> replicas = {1};
  // Called with each figure as soon as it is measured; may be empty.
  std::function<void(const Figure&)> measured;
};

// Operations in flight at once: 8, and 4 from 64 MiB on.
int OutstandingFor(uint64_t bytes);

// Measures push with apply (SGD), pull and push_pull for each size, and the 64-byte round trip of
// push and pull, on tables that it creates in `client`'s cluster and drops again. `transport` only
// labels the figures. Figures with more than one replica are labeled as well: "covey push r=2".
absl::StatusOr<std::vector<Figure>> MeasureClient(client::ParameterClient& client,
                                                  const std::string& transport,
                                                  const LoadOptions& options);

}  // namespace covey::cli
