// SPDX-License-Identifier: Apache-2.0
#include "server/table/table_budget.h"

#include "absl/strings/str_cat.h"

namespace covey::server {

absl::Status TableBudget::TooFew(uint64_t wanted, uint64_t taken) const {
  return absl::ResourceExhaustedError(
      absl::StrCat("it needs ", wanted, " bytes, and the tables of this server take ", taken,
                   " of the ", bytes_max_,
                   " bytes that they may; drop tables, start more servers, or allow more with "
                   "--table-bytes-max"));
}

absl::Status TableBudget::Share::Reserve(uint64_t bytes) {
  if (budget_ != nullptr && bytes > bytes_) {
    const uint64_t more = bytes - bytes_;
    uint64_t taken = budget_->taken_.load();
    do {
      if (taken > budget_->bytes_max_ || more > budget_->bytes_max_ - taken) {
        return budget_->TooFew(more, taken);
      }
    } while (!budget_->taken_.compare_exchange_weak(taken, taken + more));
    bytes_ = bytes;
  }
  Set(bytes);
  return absl::OkStatus();
}

void TableBudget::Share::Set(uint64_t bytes) {
  if (budget_ != nullptr && bytes != bytes_) budget_->taken_ += bytes - bytes_;
  bytes_ = bytes;
}

absl::Status TableBudget::Share::CheckRoom(uint64_t more) const {
  if (budget_ == nullptr || more == 0) return absl::OkStatus();
  const uint64_t taken = budget_->taken_.load();
  if (taken <= budget_->bytes_max_ && more <= budget_->bytes_max_ - taken) return absl::OkStatus();
  return budget_->TooFew(more, taken);
}

}  // namespace covey::server
