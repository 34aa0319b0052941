// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/load/block.h"
#include "client/cli/bench/measure/turns.h"
#include "client/parameter_client.h"

namespace covey::cli {

// Operations in flight at once: 8, and 4 from 64 MiB on, 1 from 1 GiB on.
int OutstandingFor(uint64_t bytes);

// How a block measures one size.
struct TableLoadOptions {
  // Labels the figures.
  std::string transport;
  uint64_t bytes = 0;
  uint32_t replicas = 1;
  // A turn takes at least this long.
  absl::Duration duration;
  // Round trips per turn.
  int round_trips = 0;
};

// One contender per operation of `block`, without its baseline and limits, on a table that is
// created in the clients' cluster and dropped with the last of the contenders. The first
// `block.clients` of `clients` take part, all driven by the caller; the first one also creates and
// drops. Both outlive the contenders. Precondition: there are as many clients.
absl::StatusOr<std::vector<Contender>> MakeTableLoad(
    const std::vector<std::unique_ptr<client::ParameterClient>>& clients, const Block& block,
    const TableLoadOptions& options);

}  // namespace covey::cli
