// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "absl/time/time.h"
#include "common/net/message.h"
#include "common/net/transport.h"
#include "common/simulation/simulator.h"
#include "tests/sim/network/host_id.h"
#include "tests/sim/network/sim_network.h"

namespace covey::sim {

// SimNetwork behind the interface of the real transports, so that one conformance suite covers
// both. Waiting runs the simulator. Actor-confined; simulator and network outlive it.
class SimTransport : public Transport {
 public:
  // `endpoint` may be empty: it listens nowhere.
  SimTransport(Simulator& simulator, SimNetwork& network, HostId host, std::string endpoint);
  ~SimTransport() override { network_.Close(port_); }

  std::string endpoint() const override { return endpoint_; }
  void SetRoute(const Address& peer, const std::string& endpoint) override {
    network_.SetRoute(port_, peer, endpoint);
  }
  void DropRoute(const Address& peer) override { network_.DropRoute(port_, peer); }
  void Send(Message message) override;
  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override;
  void Wait(absl::Duration timeout) override;
  void WakeUp() override { woken_ = true; }
  const TransportCounters& counters() const override { return counters_; }

 private:
  Simulator& simulator_;
  SimNetwork& network_;
  const std::string endpoint_;
  PortId port_;
  std::deque<Message> inbox_;
  bool woken_ = false;
  TransportCounters counters_;
};

}  // namespace covey::sim
