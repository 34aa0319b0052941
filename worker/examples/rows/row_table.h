// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/handle.h"
#include "client/parameter_client.h"
#include "client/row_batch.h"
#include "client/row_filter.h"
#include "client/row_residuals.h"
#include "client/table.h"
#include "proto/table.pb.h"
#include "worker/local_rows.h"
#include "worker/worker.h"

namespace covey::examples {

// The rows of a sparse table that one worker trains, batch by batch. While the gradients of a batch
// travel, the program prepares the next batch:
//
//   COVEY_RETURN_IF_ERROR(table.StartPull(keys));  // also of other tables, which overlap
//   COVEY_RETURN_IF_ERROR(table.WaitForRows());
//   ... compute table.gradients() from table.rows(), a row for each key, in order
//   COVEY_RETURN_IF_ERROR(table.Push(samples));
//
// A pull reads the worker's own pushes. Errors are those of ParameterClient. Confined to one
// thread; the client outlives it.
class RowTable {
 public:
  // Creates the table, or takes an equal one. Under local:H, Push is a step of the worker's own,
  // and every H steps its group pushes (worker/local_rows.h).
  static absl::StatusOr<std::unique_ptr<RowTable>> Open(worker::Worker& worker,
                                                        client::ParameterClient& client,
                                                        const proto::TableSpec& spec);
  // Waits for what is in flight.
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  size_t width() const { return table_.width; }

  // Keys in any order; they may repeat. Ends the batch before.
  absl::Status StartPull(std::span<const uint64_t> keys);
  absl::Status WaitForRows();
  // From now on a filter decides which rows of a push go, and holds back the others.
  absl::Status StartFilter(const client::RowFilter::Options& options);
  // Pushes what is held back; the pushes that follow are whole. Returns when all pushes have been
  // applied. Without a filter it is Finish.
  absl::Status StopFilter();
  // Of the filter's pushes, also when it has stopped.
  const client::RowResiduals::Counts& filtered() const { return filtered_; }

  // Of the batch, `width` elements for each key; gradients hold what they held before, and are
  // those of the sum over all examples.
  std::span<const float> rows() const { return rows_; }
  std::span<float> gradients() { return gradients_; }
  // Starts the push, after the one before has arrived. Precondition: WaitForRows was OK.
  absl::Status Push(uint64_t samples);
  // In place of a pull and a push, a step without examples. Returns as Finish.
  absl::Status Skip();
  // Under local, ends the round: training is over, and what follows reads from the servers.
  absl::Status EndRounds();
  // Returns when the last push has been applied.
  absl::Status Finish();

  // Sent and received by the table's connection. Under local, it also carries the worker's steps.
  absl::StatusOr<uint64_t> Bytes();

  // Any number of rows, for an evaluation.
  absl::Status Read(std::span<const uint64_t> keys, std::span<float> rows);

 private:
  RowTable(client::ParameterClient& client, client::Table table)
      : client_(client), table_(std::move(table)) {}

  client::ParameterClient& client_;
  const client::Table table_;
  client::RowBatch batch_;
  std::vector<float> rows_;
  std::vector<float> gradients_;
  std::unique_ptr<worker::LocalRows> local_;   // null: each step is pushed
  std::unique_ptr<client::RowFilter> filter_;  // null: pushes are whole
  client::RowResiduals::Counts filtered_;
  client::Handle pull_{client::OperationResult{}};
  client::Handle push_{client::OperationResult{}};
};

// A table's definition with what all examples have in common: applied on arrival, on two servers
// where there are as many.
proto::TableSpec RowsSpec(absl::string_view name, uint32_t width);

}  // namespace covey::examples
