// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/socket_limit.h"

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/measure/statistics.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// A batch takes at least this part of a turn.
constexpr int kBatchesPerTurn = 4;

// The partner's next task.
struct Request {
  enum Kind : uint64_t { kReceive, kSend, kEcho };
  uint64_t kind = kReceive;
  uint64_t bytes = 0;
  uint64_t count = 0;
  uint64_t lanes = 1;
};

absl::Status SendLanes(BlockingSocket& socket, const std::vector<LaneMemory>& lanes,
                       uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const LaneMemory& lane = lanes[i % lanes.size()];
    COVEY_RETURN_IF_ERROR(socket.Send(lane.data(), lane.size()));
  }
  return absl::OkStatus();
}

absl::Status ReceiveLanes(BlockingSocket& socket, std::vector<LaneMemory>& lanes, uint64_t count,
                          uint64_t& sum) {
  for (uint64_t i = 0; i < count; ++i) {
    LaneMemory& lane = lanes[i % lanes.size()];
    COVEY_RETURN_IF_ERROR(socket.ReceiveAndRead(lane.data(), lane.size(), sum));
  }
  return absl::OkStatus();
}

absl::Status Serve(BlockingSocket& socket) {
  std::vector<LaneMemory> lanes;
  uint64_t sum = 0;
  for (;;) {
    Request request;
    COVEY_RETURN_IF_ERROR(socket.Receive(&request, sizeof(request)));
    if (lanes.size() != request.lanes || lanes[0].size() != request.bytes) {
      lanes = MakeLanes(request.bytes, request.lanes);
    }
    switch (request.kind) {
      case Request::kReceive:
        COVEY_RETURN_IF_ERROR(ReceiveLanes(socket, lanes, request.count, sum));
        COVEY_RETURN_IF_ERROR(socket.Send(&sum, sizeof(sum)));
        break;
      case Request::kSend:
        COVEY_RETURN_IF_ERROR(SendLanes(socket, lanes, request.count));
        break;
      case Request::kEcho:
        for (uint64_t i = 0; i < request.count; ++i) {
          COVEY_RETURN_IF_ERROR(socket.Receive(lanes[0].data(), request.bytes));
          COVEY_RETURN_IF_ERROR(socket.Send(lanes[0].data(), request.bytes));
        }
        break;
      default:
        return absl::InvalidArgumentError("unknown request to the raw socket");
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketLimit>> SocketLimit::Start(const LimitLoad& load) {
  auto limit = absl::WrapUnique(new SocketLimit(load));
  if (load.transport == "tcp") {
    COVEY_ASSIGN_OR_RETURN(limit->partner_, Partner::Start("socket tcp"));
    uint32_t port = 0;
    if (!absl::SimpleAtoi(limit->partner_->address(), &port)) {
      return absl::UnavailableError("the partner of the raw socket printed no port");
    }
    COVEY_ASSIGN_OR_RETURN(limit->socket_, BlockingSocket::ConnectTcp(static_cast<uint16_t>(port)));
  } else {
    COVEY_ASSIGN_OR_RETURN(limit->folder_, TemporaryFolder::Make());
    const std::string path = limit->folder_->path() + "/socket";
    COVEY_ASSIGN_OR_RETURN(limit->partner_, Partner::Start(absl::StrCat("socket ", path)));
    COVEY_ASSIGN_OR_RETURN(limit->socket_, BlockingSocket::ConnectUnix(path));
  }
  limit->lanes_ = MakeLanes(load.bytes, load.lanes);
  return limit;
}

absl::StatusOr<Sample> SocketLimit::Transfer(Direction direction) {
  Sample sample;
  uint64_t sum = 0;
  const absl::Time begin = MonotonicNow();
  do {
    const absl::Time batch_begin = MonotonicNow();
    const Request request = {
        .kind = direction == Direction::kPush ? Request::kReceive : Request::kSend,
        .bytes = load_.bytes,
        .count = batch_,
        .lanes = load_.lanes};
    COVEY_RETURN_IF_ERROR(socket_->Send(&request, sizeof(request)));
    if (direction == Direction::kPush) {
      COVEY_RETURN_IF_ERROR(SendLanes(*socket_, lanes_, batch_));
      COVEY_RETURN_IF_ERROR(socket_->Receive(&sum, sizeof(sum)));
    } else {
      COVEY_RETURN_IF_ERROR(ReceiveLanes(*socket_, lanes_, batch_, sum));
    }
    sample.operations += batch_;
    if (MonotonicNow() - batch_begin < load_.duration / kBatchesPerTurn) batch_ *= 2;
  } while (MonotonicNow() - begin < load_.duration);
  sample.bytes = sample.operations * load_.bytes;
  sample.values = {static_cast<double>(sample.bytes) / 1e9 /
                   absl::ToDoubleSeconds(MonotonicNow() - begin)};
  return sample;
}

absl::StatusOr<Sample> SocketLimit::RoundTrips() {
  const auto count = static_cast<uint64_t>(load_.round_trips);
  const Request request = {
      .kind = Request::kEcho, .bytes = load_.bytes, .count = count, .lanes = load_.lanes};
  COVEY_RETURN_IF_ERROR(socket_->Send(&request, sizeof(request)));
  std::vector<double> microseconds;
  for (uint64_t i = 0; i < count; ++i) {
    const absl::Time begin = MonotonicNow();
    COVEY_RETURN_IF_ERROR(socket_->Send(lanes_[0].data(), load_.bytes));
    COVEY_RETURN_IF_ERROR(socket_->Receive(lanes_[0].data(), load_.bytes));
    microseconds.push_back(absl::ToDoubleMicroseconds(MonotonicNow() - begin));
  }
  return Sample{.values = {Quantile(microseconds, 0.5), Quantile(microseconds, 0.99),
                           Quantile(microseconds, 0.999)},
                .operations = count,
                .bytes = count * load_.bytes};
}

absl::Status ServeSocketLimit(const std::string& endpoint) {
  COVEY_ASSIGN_OR_RETURN(BlockingSocket socket, BlockingSocket::AcceptOne(endpoint, PrintAddress));
  return Serve(socket);
}

}  // namespace covey::cli
