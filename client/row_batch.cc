// SPDX-License-Identifier: Apache-2.0
#include "client/row_batch.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/key_batch.h"

namespace covey::client {

absl::Status RowBatch::Assign(const Table& table, std::span<const uint64_t> keys) {
  if (!table.is_sparse()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table.name, "' is dense, and has no rows with keys; pull all its elements"));
  }
  if (keys.size() >= std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table.name, "': ", keys.size(), " keys; divide the batch"));
  }
  if (batch_ == nullptr || batch_.use_count() > 1) batch_ = std::make_shared<KeyBatch>();
  batch_->Assign(keys, table.shard_ends);
  return absl::OkStatus();
}

size_t RowBatch::size() const { return batch_ == nullptr ? 0 : batch_->size(); }

size_t RowBatch::distinct() const { return batch_ == nullptr ? 0 : batch_->distinct(); }

}  // namespace covey::client
