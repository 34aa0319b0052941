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

// The frames that a network has delivered, or is about to deliver, out of the memory of their
// senders. A sender's handle on a frame lives until the receiver has dropped its last one, or their
// connection breaks. The receiver may read the frame even then. This is stricter than shared memory
// between processes (common/net/shm), where a frame occupies the sender's region and its handle is
// dropped at once.
//
// Actor-confined. Frames may outlive it.
class LentFrames {
 public:
  // One frame of one delivery.
  using LoanId = uint64_t;

  LentFrames();
  // Gives all frames back.
  ~LentFrames();

  // `bytes` as a lent buffer. `sent`: the sender's handle; its bytes may differ from those that the
  // network delivers. Precondition (checked): the memory of `bytes` is not lent already.
  Buffer Lend(uint64_t connection, const Buffer& sent, const Buffer& bytes);
  // Drops the senders' handles on the frames that have come through the connection.
  void GiveBack(uint64_t connection);

  // The loans behind the frames of a message.
  std::vector<LoanId> LoansOf(const Message& message) const;
  // How many of these frames have a handle at a receiver.
  size_t CountInUse(const std::vector<LoanId>& loans) const;

 private:
  struct Loan {
    uint64_t connection = 0;
    Buffer sent;
    Buffer bytes;
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
