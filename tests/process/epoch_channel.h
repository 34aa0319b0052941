// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "common/net/grpc_channel.h"
#include "common/net/transport.h"

namespace covey {

// As GrpcChannel, for a node that holds no view: each answer to a watch is a view that has an epoch
// and nothing else. So thousands of nodes fit into one process, which reads of each view that a
// scheduler sends only the first bytes. Without TLS.
class EpochChannel : public MessagePort {
 public:
  // Of the scheduler, "host:port"; `sink` as that of GrpcChannel.
  EpochChannel(const std::string& scheduler, GrpcChannel::Sink sink);
  // As GrpcChannel's.
  ~EpochChannel() override;

  // Thread-safe.
  void Send(Message message) override;

 private:
  class Implementation;
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace covey
