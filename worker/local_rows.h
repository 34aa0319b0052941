// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/counters.h"
#include "worker/worker.h"

namespace covey::proto {
class TableSpec;
}  // namespace covey::proto

namespace covey::worker {

// The rows of a sparse table under `local:H`. The worker takes H steps with copies of its own, by
// the table's inner optimizer; then its group pushes how far each row has moved, and the servers'
// outer optimizer takes the mean over all groups, or over those that have touched the row
// (SparseRows.round_mean). Rows that no group has touched in a round do not move. With ADAGRAD in
// the workers of G groups, the mean over all is right with an outer rate of the square root of G.
//
//   COVEY_ASSIGN_OR_RETURN(auto rows, LocalRows::Open(*worker, spec, {}));
//   while (training) {
//     COVEY_RETURN_IF_ERROR(rows->Pull(keys, values));  // a row for each key, which may repeat
//     ... compute gradients, a row for each key: the sums over the examples of the batch
//     COVEY_RETURN_IF_ERROR(rows->Step(gradients, samples));
//   }
//   COVEY_RETURN_IF_ERROR(rows->Finish());
//
// Each row is read from the servers once a round, when the worker first asks for it; the read waits
// until the group's last round has become an update, as the contract says. So groups go through
// rounds together, or within the contract's quorum and grace. A worker takes a step also when it
// has no examples, so that its rounds end with those of the others.
//
// The state of the inner optimizer stays in this process: it is not in snapshots, and lost with the
// worker. Evaluate with client::ParameterClient, which reads what the servers have.
//
// Errors: those of ParameterClient; FAILED_PRECONDITION: the group has other members, who would
// have to push as one (start as many groups as workers), or the worker is in another group now.
// After an error of Pull or Step the same call can be repeated: a push that has failed is sent
// again then, under the same identity, and counts once. Each operation has a deadline of its own; a
// `wait` that ends before it is DEADLINE_EXCEEDED with in_flight(), and the same call goes on.
//
// Thread-safety: one thread, that of the worker, which outlives this. Memory: RoundRows, and the
// rows of the push in flight.
class LocalRows {
 public:
  struct Options {
    // Rows of a round at most, those that are only read included. As long as there is room, rows of
    // earlier rounds keep the inner optimizer's state; a row that had to make room begins with an
    // empty one when it comes again.
    size_t rows_max = 1'000'000;
  };

  // Creates the table, or takes an equal one. INVALID_ARGUMENT: it is not sparse, or its contract
  // is not local; or rows_max is 0.
  static absl::StatusOr<std::unique_ptr<LocalRows>> Open(Worker& worker,
                                                         const proto::TableSpec& spec,
                                                         const Options& options);
  // Waits for the push in flight.
  ~LocalRows();
  LocalRows(const LocalRows&) = delete;
  LocalRows& operator=(const LocalRows&) = delete;

  // Fills `rows`, the table's width for each key, with the rows as the worker's steps have left
  // them. Step is about the keys of the last Pull that succeeded. INVALID_ARGUMENT: the round
  // would have more than rows_max rows, or more of a shard than a push carries (ParameterClient).
  absl::Status Pull(std::span<const uint64_t> keys, std::span<float> rows,
                    absl::Duration wait = absl::InfiniteDuration());
  // One inner step; after H of them the round ends, and its push starts. `gradients`: a row for
  // each key of the last Pull; those of a key that repeats are added up. Without samples it
  // changes no row. INVALID_ARGUMENT: the sizes differ; or NaN or infinity, and no row has changed.
  absl::Status Step(std::span<const float> gradients, uint64_t samples,
                    absl::Duration wait = absl::InfiniteDuration());
  // Ends the round early, if it has begun, and waits until the servers have its push. They apply it
  // when the other groups' pushes have come, or these groups have left.
  absl::Status Finish(absl::Duration wait = absl::InfiniteDuration());
  // A read or a push whose end no call has seen yet.
  bool in_flight() const;

  // Of the worker's connection, which also carries its steps. UNAVAILABLE: the worker is stopping.
  absl::StatusOr<client::Counters> GetCounters() const;
  size_t width() const;
  // The round of the next step, from 1.
  uint64_t round() const;

 private:
  class State;
  explicit LocalRows(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace covey::worker
