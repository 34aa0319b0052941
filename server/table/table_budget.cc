// SPDX-License-Identifier: Apache-2.0
#include "server/table/table_budget.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::server {

absl::Status TableBudget::CheckFits(uint64_t more, uint64_t taken) const {
  const uint64_t bytes_max = bytes_max_.load();
  if (taken <= bytes_max && more <= bytes_max - taken) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("it needs ", more, " bytes, and the tables of this server take ", taken,
                   " of the ", bytes_max,
                   " bytes that they may; drop tables, start more servers, or allow more with "
                   "--table-bytes-max"));
}

absl::Status TableBudget::Share::Reserve(uint64_t bytes) {
  if (budget_ != nullptr && bytes > bytes_) {
    const uint64_t more = bytes - bytes_;
    uint64_t taken = budget_->taken_.load();
    do {
      COVEY_RETURN_IF_ERROR(budget_->CheckFits(more, taken));
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
  return budget_->CheckFits(more, budget_->taken_.load());
}

}  // namespace covey::server
