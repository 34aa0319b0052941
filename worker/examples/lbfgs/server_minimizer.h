// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/parameter_client.h"
#include "proto/table.pb.h"
#include "worker/examples/lbfgs/direction.h"

namespace covey::lbfgs {

// One iteration that ended with a step.
struct Iteration {
  double objective = 0;
  double gradient_norm = 0;
  double step = 0;
  uint64_t evaluations = 0;
  // Of the minimizer's client, both ways.
  uint64_t bytes = 0;
};

// L-BFGS whose vectors stay on the servers: it sends functions and queries, and gets numbers. All
// inner products of an iteration are one request of each shard, and the direction is another, so
// its bytes depend on the number of shards and on the history, and not on the number of elements.
//
//   vector 0       the weights at which workers evaluate
//   vector 1       where they push their gradients
//   vectors 2, 3   weights and gradient after the newest step
//   vector 4       the direction
//   then           differences of weights, and as many of gradients
//
// Errors are those of ParameterClient. Confined to one thread; the client outlives it.
class ServerMinimizer {
 public:
  // The table to create, of so many elements.
  static proto::TableSpec SpecOf(uint64_t elements, const Settings& settings);

  // Vector 0 holds a point, and vector 1 zeros: adds the sum of all gradients to vector 1, with
  // learning rate and samples of 1, and returns the sum of the losses.
  using Evaluate = std::function<absl::StatusOr<double>()>;

  // `samples`: all that are evaluated, by which sums are divided. The weights begin as they are in
  // vector 0.
  ServerMinimizer(client::ParameterClient& client, const client::Table& table,
                  const Settings& settings, uint64_t samples)
      : client_(client), table_(table), settings_(settings), samples_(samples) {}

  // Before the first Step.
  absl::Status Begin(const Evaluate& evaluate);
  // False: it has ended, as the settings say, or because rounding hides any decrease; vector 0
  // holds the weights.
  absl::StatusOr<bool> Step(const Evaluate& evaluate);

  const Iteration& iteration() const { return iteration_; }
  uint64_t iterations() const { return iterations_; }

 private:
  using Functions = std::vector<VectorFunction>;

  absl::Status Call(Functions functions);
  absl::StatusOr<std::vector<double>> Ask(std::vector<VectorQuery> queries);
  absl::StatusOr<uint64_t> BytesSoFar();
  // Of the point in vector 0: its objective. Vector 1 is then the gradient of the objective.
  absl::StatusOr<double> EvaluateTrial(const Evaluate& evaluate);
  // Ends an iteration: the differences of its step, and the weights and gradient after it.
  absl::Status KeepPair();
  // Asks for all inner products with these.
  absl::Status Multiply(const std::vector<uint32_t>& vectors);
  // The vectors of the history, as DirectionCoefficients has them.
  std::vector<uint32_t> Basis() const;
  uint32_t SlotOf(uint64_t iteration) const;

  client::ParameterClient& client_;
  const client::Table table_;
  const Settings settings_;
  const uint64_t samples_;

  Iteration iteration_;
  uint64_t iterations_ = 0;
  double first_norm_ = 0;
  std::vector<std::vector<double>> products_;  // by numbers of vectors
};

}  // namespace covey::lbfgs
