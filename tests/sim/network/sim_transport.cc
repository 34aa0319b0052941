// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/sim_transport.h"

#include <utility>

namespace covey::sim {

SimTransport::SimTransport(Simulator& simulator, SimNetwork& network, HostId host,
                           std::string endpoint)
    : simulator_(simulator), network_(network), endpoint_(std::move(endpoint)) {
  port_ = network_.Open(host, endpoint_, [this](Message message) {
    ++counters_.received;
    inbox_.push_back(std::move(message));
  });
}

void SimTransport::Send(Message message) {
  if (network_.Send(port_, std::move(message))) {
    ++counters_.sent;
  } else {
    ++counters_.dropped;
  }
}

bool SimTransport::Receive(int limit, absl::FunctionRef<void(Message)> sink) {
  for (; limit > 0 && !inbox_.empty(); --limit) {
    Message message = std::move(inbox_.front());
    inbox_.pop_front();
    sink(std::move(message));
  }
  return !inbox_.empty();
}

void SimTransport::Wait(absl::Duration timeout) {
  const absl::Time until = simulator_.now() + timeout;
  while (inbox_.empty() && !woken_ && simulator_.RunOne(until)) {
  }
  woken_ = false;
}

}  // namespace covey::sim
