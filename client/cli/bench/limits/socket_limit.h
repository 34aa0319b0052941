// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/limits/blocking_socket.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/partner.h"
#include "client/cli/bench/measure/turns.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {

// The speed of one blocking socket between two processes, tcp or unix: calls of at most 1 MiB out
// of memory as cold as ours, and the receiver reads what it receives. No frames, no queues, no
// checks. Options of the system's sockets stay as they are, as for our own. Confined to one thread.
class SocketLimit {
 public:
  enum class Direction { kPush, kPull };

  static absl::StatusOr<std::unique_ptr<SocketLimit>> Start(const LimitLoad& load);

  // One turn in this direction; GB/s.
  absl::StatusOr<Sample> Transfer(Direction direction);
  // One turn of round trips; p50, p99 and p99.9 in us.
  absl::StatusOr<Sample> RoundTrips();

 private:
  explicit SocketLimit(const LimitLoad& load) : load_(load) {}

  const LimitLoad load_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<Partner> partner_;
  std::optional<BlockingSocket> socket_;
  std::vector<LaneMemory> lanes_;
  // Operations per request to the partner: enough to make the request itself negligible.
  uint64_t batch_ = 1;
};

// The partner: listens on "tcp" or on the path of a unix socket, and serves one connection.
absl::Status ServeSocketLimit(const std::string& endpoint);

}  // namespace covey::cli
