// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/live_group.h"
#include "common/contract/contract.h"
#include "common/net/message.h"

namespace covey::sim {

// Tracks which contracts and live groups each data loop of a server knew while it had a request. A
// request that was found acceptable may wait in a loop until the reply is durable, and the loop may
// get further views meanwhile.
//
// Actor-confined.
class LoopViews {
 public:
  // The view of one loop.
  struct View {
    Epoch epoch;
    absl::Time until = absl::InfiniteFuture();  // when it was replaced
    std::map<TableId, Contract> contracts;
    std::vector<LiveGroup> live;
  };

  // A message is about to be given to a process.
  void OnReceive(absl::Time now, const Message& message);
  // The views that the replying loop had since the request arrived, newest first; valid until the
  // next call of OnReceive.
  std::vector<const View*> Since(const Message& reply) const;

 private:
  // Node of the requester, and request id.
  using RequestKey = std::pair<uint64_t, uint64_t>;

  void NoteView(absl::Time now, const Message& message);

  std::map<Address, std::vector<View>> views_;  // oldest first
  std::map<std::pair<Address, RequestKey>, absl::Time> arrived_;
};

}  // namespace covey::sim
