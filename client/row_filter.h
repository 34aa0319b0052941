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
#include "client/filter_rule.h"
#include "client/handle.h"
#include "client/parameter_client.h"
#include "client/row_batch.h"
#include "client/row_residuals.h"
#include "client/table.h"

namespace covey::client {

// Pushes those rows of a gradient of a sparse table that are worth it now, and holds back the
// others until they are: for training where the network or the servers are the limit.
//
//   COVEY_ASSIGN_OR_RETURN(auto filter, RowFilter::Create(*client, table,
//       {.rule = {.kind = FilterRule::Kind::kKkt, .threshold = l1}}));
//   ... for each mini-batch: pull its rows, compute gradients, then
//   COVEY_RETURN_IF_ERROR(filter->Push(batch, rows, gradients, {.samples = 64}).Wait());
//   ... before the table is evaluated, and at the end
//   COVEY_RETURN_IF_ERROR(filter->Flush());
//
// A row that is held back is added to the next gradient of its key, and goes with it or in a Flush
// (client/row_residuals.h); only a process that dies loses it. The filter of OSDI 2014 drops it,
// because its servers get the gradient of all examples again in each pass. FTRL gets each gradient
// once: its weight follows from z, the sum of all gradients, and from n, the sum of their squares
// (McMahan et al. 2013, algorithm 1: z += g - sigma * weight, n += g * g). While a weight is zero,
// z grows by the gradients alone, so a sum of them that comes later leaves z as it would be, and
// its pieces leave n nearly so.
//
// Samples: those of a mini-batch count with its own push, which goes out also when all rows wait. A
// residual is kept as a mean, by the samples of the pushes that brought it, so that under SGD it
// changes its row by as much as it would have then. A server does not see a row that waits: not for
// the admission of its key, and not among the updates of Adam.
//
// Not thread-safe. The client outlives the filter.
class RowFilter {
 public:
  struct Options {
    FilterRule rule;
    // Rows that are held back at most, 1 to 2^32 - 2: beyond it the oldest go with the next push.
    // Each takes its floats and about 60 bytes.
    size_t rows_max = 1'000'000;
    // Of a residual, 1 to 16: pushes over which it goes. 1 suits SGD, which adds up no squares.
    uint32_t pieces_max = 4;
  };
  struct Counts : RowResiduals::Counts {
    uint64_t held = 0;  // rows that wait now
  };

  // INVALID_ARGUMENT: the table is dense, or an option is out of its range.
  static absl::StatusOr<std::unique_ptr<RowFilter>> Create(ParameterClient& client,
                                                           const Table& table,
                                                           const Options& options);
  // Drops what is held back.
  ~RowFilter();

  // As ParameterClient::Push of the same batch and gradient, with the rows on which the gradient
  // was computed. Errors are the same; with INVALID_ARGUMENT for sizes, samples and elements that
  // are not finite nothing has changed. After another error it is unknown whether the gradients
  // that went, also those that had waited, were applied. A shard may get pieces of residuals
  // besides its rows of the batch, and all together count for its limits.
  Handle Push(const RowBatch& batch, std::span<const float> rows, std::span<const float> gradient,
              const PushOptions& options = {});
  // Pushes all that is held back, each row as one, and returns when these pushes are done. Each of
  // them counts as one sample. `deadline`: of each push. Errors are those of ParameterClient::Push.
  absl::Status Flush(absl::Duration deadline = absl::ZeroDuration());

  Counts counts() const;

 private:
  RowFilter(ParameterClient& client, const Table& table, const Options& options);
  // INVALID_ARGUMENT: what Push says.
  absl::Status Gather(const RowBatch& batch, std::span<const float> rows,
                      std::span<const float> gradient, uint64_t samples);

  ParameterClient& client_;
  const Table table_;
  RowResiduals residuals_;
  KeyedRows outgoing_;
  RowBatch outgoing_batch_;
  // Of the distinct keys of a batch.
  std::vector<uint64_t> keys_;
  std::vector<float> rows_;
  std::vector<float> gradients_;
};

}  // namespace covey::client
