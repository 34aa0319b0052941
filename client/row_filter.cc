// SPDX-License-Identifier: Apache-2.0
#include "client/row_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/engine/requests/key_batch.h"
#include "common/base/status_macros.h"
#include "common/optimizer/kernels.h"

namespace covey::client {
namespace {

constexpr uint32_t kPiecesMax = 16;
// Of one push of Flush: far below the limits of a shard.
constexpr size_t kFlushedElements = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<RowFilter>> RowFilter::Create(ParameterClient& client,
                                                             const Table& table,
                                                             const Options& options) {
  const auto refused = [&table](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("a filter of pushes to table '", table.name, "': ", why...));
  };
  if (!table.is_sparse()) return refused("it is dense, and has no rows with keys; push all of it");
  const double threshold = options.rule.threshold;
  if (!std::isfinite(threshold) || threshold < 0) {
    return refused("a threshold of ", threshold, "; use 0 or more");
  }
  constexpr size_t kRowsMax = std::numeric_limits<uint32_t>::max() - 1;
  if (options.rows_max == 0 || options.rows_max > kRowsMax) {
    return refused(options.rows_max, " rows held back; hold 1 to ", kRowsMax);
  }
  if (options.pieces_max == 0 || options.pieces_max > kPiecesMax) {
    return refused("residuals in ", options.pieces_max, " pieces; use 1 to ", kPiecesMax);
  }
  return absl::WrapUnique(new RowFilter(client, table, options));
}

RowFilter::RowFilter(ParameterClient& client, const Table& table, const Options& options)
    : client_(client),
      table_(table),
      residuals_(table.width, options.rule,
                 {.rows = options.rows_max, .pieces = options.pieces_max}) {}

RowFilter::~RowFilter() = default;

Handle RowFilter::Push(const RowBatch& batch, std::span<const float> rows,
                       std::span<const float> gradient, const PushOptions& options) {
  absl::Status fits = Gather(batch, rows, gradient, options.samples);
  if (fits.ok()) {
    residuals_.Select(
        {.keys = keys_, .rows = rows_, .gradients = gradients_, .samples = options.samples},
        outgoing_);
    fits = outgoing_batch_.Assign(table_, outgoing_.keys);
  }
  if (!fits.ok()) return Handle({.status = fits});
  return client_.Push(table_, outgoing_batch_, outgoing_.rows, options);
}

absl::Status RowFilter::Gather(const RowBatch& batch, std::span<const float> rows,
                               std::span<const float> gradient, uint64_t samples) {
  const size_t width = table_.width;
  const size_t elements = batch.size() * width;
  if (rows.size() != elements || gradient.size() != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table_.name, "' has ", width, " columns, and the batch ",
                     batch.size(), " keys; got ", gradient.size(), " gradient and ", rows.size(),
                     " row elements; pass a row and a gradient for each"));
  }
  if (samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table_.name, "': a push stands for at least 1 sample"));
  }
  keys_.clear();
  rows_.resize(batch.distinct() * width);
  gradients_.resize(rows_.size());
  for (size_t shard = 0; batch.batch_ != nullptr && shard < batch.batch_->shards(); ++shard) {
    const KeyBatch& of_batch = *batch.batch_;
    const std::span<const uint64_t> keys = of_batch.KeysOf(shard);
    const size_t begin = keys_.size() * width, count = keys.size() * width;
    of_batch.PickRows(shard, width, rows, std::span(rows_).subspan(begin, count));
    of_batch.SumRows(shard, width, gradient, std::span(gradients_).subspan(begin, count));
    keys_.insert(keys_.end(), keys.begin(), keys.end());
  }
  if (const std::optional<size_t> bad = FirstNonFinite(gradients_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table_.name, "': column ", *bad % width, " of the gradient of key ",
                     keys_[*bad / width], " is ", gradients_[*bad],
                     "; push finite numbers, or leave the batch out"));
  }
  return absl::OkStatus();
}

absl::Status RowFilter::Flush(absl::Duration deadline) {
  const size_t rows_at_once = std::max<size_t>(1, kFlushedElements / table_.width);
  residuals_.SelectAll(outgoing_);
  for (size_t first = 0; first < outgoing_.keys.size(); first += rows_at_once) {
    const size_t count = std::min(rows_at_once, outgoing_.keys.size() - first);
    COVEY_RETURN_IF_ERROR(
        outgoing_batch_.Assign(table_, std::span(outgoing_.keys).subspan(first, count)));
    const auto rows =
        std::span<const float>(outgoing_.rows).subspan(first * table_.width, count * table_.width);
    COVEY_RETURN_IF_ERROR(
        client_.Push(table_, outgoing_batch_, rows, {.deadline = deadline}).Wait());
  }
  return absl::OkStatus();
}

RowFilter::Counts RowFilter::counts() const { return {residuals_.counts(), residuals_.size()}; }

}  // namespace covey::client
