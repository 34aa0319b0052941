// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/lent_frames.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey::sim {

LentFrames::LentFrames() : loans_(std::make_shared<Loans>()) {}

Buffer LentFrames::Lend(const Buffer& sent, const Buffer& bytes) {
  const LoanId id = ++loans_->last;
  COVEY_CHECK(loans_->by_memory.emplace(bytes.data(), id).second);
  loans_->by_id[id] = {.bytes = bytes, .sent_on = sent.is_lent() ? sent : Buffer()};
  return Buffer::Lend(bytes.data(), bytes.size(), [loans = loans_, id] { loans->End(id); });
}

std::vector<LentFrames::LoanId> LentFrames::LoansOf(const Message& message) const {
  std::vector<LoanId> loans;
  for (const Buffer& frame : message.frames) {
    const auto found = loans_->by_memory.find(frame.data());
    if (found != loans_->by_memory.end()) loans.push_back(found->second);
  }
  return loans;
}

size_t LentFrames::CountInUse(const std::vector<LoanId>& loans) const {
  return static_cast<size_t>(std::count_if(
      loans.begin(), loans.end(), [this](LoanId id) { return loans_->by_id.contains(id); }));
}

void LentFrames::Loans::End(LoanId id) {
  const auto loan = by_id.extract(id);
  by_memory.erase(loan.mapped().bytes.data());
}

}  // namespace covey::sim
