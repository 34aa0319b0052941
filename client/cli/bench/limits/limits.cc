// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/limits.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/bench/limits/memory_limit.h"
#include "client/cli/bench/limits/ring_limit.h"
#include "client/cli/bench/limits/socket_limit.h"
#include "client/cli/bench/limits/zeromq_limit.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr uint64_t kSharedMemoryBytesMin = 1 << 20;

Figure RateRow(const std::string& what, const LimitLoad& load) {
  return {.what = what, .transport = load.transport, .bytes = load.bytes, .unit = "GB/s"};
}

std::vector<Figure> TripRows(const std::string& what, const LimitLoad& load) {
  std::vector<Figure> rows;
  for (const char* suffix : {" p50", " p99", " p99.9"}) {
    rows.push_back(
        {.what = what + suffix, .transport = load.transport, .bytes = load.bytes, .unit = "us"});
  }
  return rows;
}

absl::StatusOr<std::vector<Contender>> MakeTripLimits(const LimitLoad& load) {
  COVEY_ASSIGN_OR_RETURN(std::shared_ptr<SocketLimit> socket, SocketLimit::Start(load));
  COVEY_ASSIGN_OR_RETURN(std::shared_ptr<ZeromqLimit> zeromq, ZeromqLimit::Start(load));
  return std::vector<Contender>{
      {.rows = TripRows("raw socket", load), .measure = [socket] { return socket->RoundTrips(); }},
      {.rows = TripRows("raw zeromq", load), .measure = [zeromq] { return zeromq->RoundTrips(); }},
  };
}

}  // namespace

absl::StatusOr<std::vector<Contender>> MakeLimits(const LimitLoad& load,
                                                  std::vector<std::string>& left_out) {
  using Direction = SocketLimit::Direction;
  if (load.bytes == kRoundTripBytes) return MakeTripLimits(load);
  COVEY_ASSIGN_OR_RETURN(std::shared_ptr<SocketLimit> socket, SocketLimit::Start(load));
  COVEY_ASSIGN_OR_RETURN(std::shared_ptr<ZeromqLimit> zeromq, ZeromqLimit::Start(load));
  std::vector<Contender> limits = {
      {.rows = {RateRow("raw socket push", load)},
       .measure = [socket] { return socket->Transfer(Direction::kPush); }},
      {.rows = {RateRow("raw socket pull", load)},
       .measure = [socket] { return socket->Transfer(Direction::kPull); }},
      {.rows = {RateRow("raw zeromq", load)}, .measure = [zeromq] { return zeromq->Transfer(); }},
  };
  if (load.transport == "tcp" || load.bytes < kSharedMemoryBytesMin) return limits;
  COVEY_ASSIGN_OR_RETURN(std::shared_ptr<RingLimit> ring, RingLimit::Start(load));
  limits.push_back({.rows = {RateRow("ring copy and sum", load)},
                    .measure = [ring] { return ring->Transfer(); }});
  auto copy = ProcessCopyLimit::Start(load);
  if (copy.ok()) {
    std::shared_ptr<ProcessCopyLimit> shared = *std::move(copy);
    limits.push_back({.rows = {RateRow("process copy", load)},
                      .measure = [shared] { return shared->Transfer(); }});
  } else {
    left_out.push_back(absl::StrCat("process copy: ", copy.status().message()));
  }
  return limits;
}

std::vector<std::string> LimitsOf(const std::string& operation, const std::string& suffix) {
  if (!suffix.empty()) return {"raw socket" + suffix, "raw zeromq" + suffix, "redis" + suffix};
  if (operation == "push")
    return {"raw socket push", "raw zeromq", "ring copy and sum", "redis set"};
  if (operation == "pull") return {"raw socket pull", "raw zeromq", "process copy", "redis get"};
  return {"raw socket push", "ring copy and sum"};
}

std::vector<Contender> MakeMemoryLimits(uint64_t bytes, absl::Duration duration) {
  const auto memory = std::make_shared<MemoryLimit>(bytes, duration);
  const auto row = [&](const char* what) {
    return Figure{.what = what, .transport = "memory", .bytes = bytes, .unit = "GB/s"};
  };
  return {{.rows = {row("memory copy")}, .measure = [memory] { return memory->Copy(); }},
          {.rows = {row("memory stream")}, .measure = [memory] { return memory->Stream(); }}};
}

absl::Status ServePartner(const std::string& spec) {
  const std::vector<std::string> words = absl::StrSplit(spec, ' ');
  uint64_t bytes = 0;
  const bool ends_in_bytes = absl::SimpleAtoi(words.back(), &bytes);
  if (words.size() == 2 && words[0] == "socket") return ServeSocketLimit(words[1]);
  if (words.size() == 2 && words[0] == "zeromq") return ServeZeromqLimit(words[1]);
  if (words.size() == 3 && words[0] == "ring" && ends_in_bytes) {
    return ServeRingLimit(words[1], bytes);
  }
  if (words.size() == 2 && words[0] == "memory" && ends_in_bytes) {
    return ServeProcessCopyLimit(bytes);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", spec, "' is no partner of a limit"));
}

}  // namespace covey::cli
