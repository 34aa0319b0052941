// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/parameter_client.h"
#include "client/table.h"
#include "proto/table.pb.h"

namespace covey::examples {

// The table of a tally; a push subtracts its gradient, if it says that it has one example.
proto::TableSpec TallySpec(absl::string_view name, size_t size);

// Sums that all workers of a job add to, in a table: figures of an evaluation that they share.
// Single precision: whole numbers are exact up to 2^24. Errors are those of ParameterClient.
// Confined to one thread; the client outlives it.
class Tally {
 public:
  // `spec`: a TallySpec, the same on all workers.
  static absl::StatusOr<Tally> Open(client::ParameterClient& client, const proto::TableSpec& spec);

  // Returns once the sums, as many as its size, have been added on the servers.
  absl::Status Add(std::span<const double> sums);
  // With what every Add that has returned, on any worker, has added.
  absl::StatusOr<std::vector<double>> Read();

 private:
  Tally(client::ParameterClient& client, client::Table table)
      : client_(&client), table_(std::move(table)) {}

  client::ParameterClient* client_;
  client::Table table_;
};

}  // namespace covey::examples
