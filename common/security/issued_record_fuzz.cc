// SPDX-License-Identifier: Apache-2.0
// The records of certificates that an authority has issued, or that were revoked.
#include "common/security/issued_record.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      "",
      "0a1b 99ff 2026-11-26T14:00:00Z spiffe://example.org/job/mnist/role/worker/rank/3\n"
      "0a1c 99ff 2027-01-01T00:00:00Z spiffe://example.org/role/admin replaced\n",
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto record = IssuedRecord::Parse(FuzzText(input));
  if (!record.ok()) {
    COVEY_CHECK(record.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  const std::string text = record->Text();
  const auto again = IssuedRecord::Parse(text);
  COVEY_CHECK(again.ok() && again->entries().size() == record->entries().size());
  COVEY_CHECK(again->Text() == text);
  return true;
}

}  // namespace covey
