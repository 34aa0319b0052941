// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/buffer.h"
#include "common/net/message.h"

namespace covey::sim {

// The frames that a network has delivered, or is about to deliver, as lent memory, and which of
// them a receiver still has. As with shared memory between processes (common/net/shm), the sender's
// own handle is dropped at once. A lent frame that its receiver sends on stays in use until the
// next receiver has dropped it, as it would in a queue.
//
// Actor-confined. Frames may outlive it.
class LentFrames {
 public:
  // One frame of one delivery.
  using LoanId = uint64_t;

  LentFrames();

  // `bytes`, which are delivered for the frame `sent`, as a lent buffer. Precondition (checked):
  // their memory is not lent already.
  Buffer Lend(const Buffer& sent, const Buffer& bytes);

  // The loans behind the frames of a message.
  std::vector<LoanId> LoansOf(const Message& message) const;
  // How many of these frames have a handle at a receiver.
  size_t CountInUse(const std::vector<LoanId>& loans) const;

 private:
  struct Loan {
    Buffer bytes;
    Buffer sent_on;  // the frame of an earlier loan
  };
  struct Loans {
    std::map<LoanId, Loan> by_id;
    std::map<const uint8_t*, LoanId> by_memory;
    LoanId last = 0;

    void End(LoanId id);
  };

  const std::shared_ptr<Loans> loans_;  // shared with the frames
};

}  // namespace covey::sim
