// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/partner.h"
#include "client/cli/bench/measure/turns.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {

// The speed of ZeroMQ alone: two processes with one plain pair socket each. This one sends out of
// as many lanes as the client has, and keeps as many messages in flight; the partner reads each
// message and answers it. Confined to one thread.
class ZeromqLimit {
 public:
  static absl::StatusOr<std::unique_ptr<ZeromqLimit>> Start(const LimitLoad& load);

  // One turn; GB/s.
  absl::StatusOr<Sample> Transfer();
  // One turn of round trips; p50, p99 and p99.9 in us.
  absl::StatusOr<Sample> RoundTrips();

 private:
  explicit ZeromqLimit(const LimitLoad& load);

  void Send(uint64_t number);
  absl::Status AwaitAnswer();

  const LimitLoad load_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<Partner> partner_;
  std::vector<LaneMemory> lanes_;
  zmq::context_t context_;
  // Closed before the lanes, which its messages refer to.
  zmq::socket_t socket_;
};

// The partner: listens on a ZeroMQ endpoint. It answers round trips with the same bytes, and all
// other messages with an empty one.
absl::Status ServeZeromqLimit(const std::string& endpoint);

}  // namespace covey::cli
