// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/limits/blocking_socket.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/measure/turns.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"

namespace covey::cli {

// Redis as a parameter server of plain values: SET stands beside push, though it adds nothing up,
// and GET beside pull. One key per lane, as many commands in flight as there are lanes. Confined to
// one thread.
class RedisPeer {
 public:
  // NOT_FOUND: no redis-server in PATH; says what to install. Others: it does not answer.
  static absl::StatusOr<std::unique_ptr<RedisPeer>> Start(const LimitLoad& load);

  // One turn; GB/s.
  absl::StatusOr<Sample> Set();
  absl::StatusOr<Sample> Get();
  // One turn of GETs, one at a time; p50, p99 and p99.9 in us.
  absl::StatusOr<Sample> RoundTrips();

 private:
  RedisPeer(const LimitLoad& load, std::unique_ptr<TemporaryFolder> folder,
            std::unique_ptr<ChildProcess> server, BlockingSocket socket);

  absl::Status SendSet(size_t lane);
  absl::Status SendGet(size_t lane);
  absl::Status TakeSetAnswer();
  absl::Status TakeGetAnswer(size_t lane);
  // Sets all lanes, then gets all lanes; leaves every key there.
  absl::Status FillLanes();

  const LimitLoad load_;
  const std::unique_ptr<TemporaryFolder> folder_;
  const std::unique_ptr<ChildProcess> server_;
  BlockingSocket socket_;
  std::vector<LaneMemory> lanes_;
};

// Beside operations of `load`: "redis set" and "redis get", or " p50", … of GETs as round trips.
// Empty, with a line in `left_out`, when Redis is not there.
std::vector<Contender> MakeRedisPeers(const LimitLoad& load, std::vector<std::string>& left_out);

}  // namespace covey::cli
