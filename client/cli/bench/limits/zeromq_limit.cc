// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/zeromq_limit.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/measure/statistics.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr int kAnswerMilliseconds = 10000;

}  // namespace

ZeromqLimit::ZeromqLimit(const LimitLoad& load)
    : load_(load),
      lanes_(MakeLanes(load.bytes, load.lanes)),
      socket_(context_, zmq::socket_type::pair) {
  socket_.set(zmq::sockopt::rcvtimeo, kAnswerMilliseconds);
  socket_.set(zmq::sockopt::linger, 0);
}

absl::StatusOr<std::unique_ptr<ZeromqLimit>> ZeromqLimit::Start(const LimitLoad& load) {
  auto limit = absl::WrapUnique(new ZeromqLimit(load));
  std::string endpoint = "tcp://127.0.0.1:0";
  if (load.transport != "tcp") {
    COVEY_ASSIGN_OR_RETURN(limit->folder_, TemporaryFolder::Make());
    endpoint = absl::StrCat("ipc://", limit->folder_->path(), "/zeromq");
  }
  COVEY_ASSIGN_OR_RETURN(limit->partner_, Partner::Start(absl::StrCat("zeromq ", endpoint)));
  limit->socket_.connect(limit->partner_->address());
  return limit;
}

void ZeromqLimit::Send(uint64_t number) {
  LaneMemory& lane = lanes_[number % lanes_.size()];
  // The lane outlives the message: each message is answered before the turn ends.
  zmq::message_t message(
      lane.data(), lane.size(), [](void*, void*) {}, nullptr);
  socket_.send(message, zmq::send_flags::none);
}

absl::Status ZeromqLimit::AwaitAnswer() {
  zmq::message_t answer;
  if (socket_.recv(answer, zmq::recv_flags::none).has_value()) return absl::OkStatus();
  return absl::UnavailableError("the partner of raw ZeroMQ does not answer");
}

absl::StatusOr<Sample> ZeromqLimit::Transfer() {
  uint64_t sent = 0, answered = 0;
  const absl::Time begin = MonotonicNow();
  while (sent < load_.lanes) Send(sent++);
  while (answered < sent) {
    COVEY_RETURN_IF_ERROR(AwaitAnswer());
    ++answered;
    if (MonotonicNow() - begin < load_.duration) Send(sent++);
  }
  Sample sample = {.operations = answered, .bytes = answered * load_.bytes};
  sample.values = {static_cast<double>(sample.bytes) / 1e9 /
                   absl::ToDoubleSeconds(MonotonicNow() - begin)};
  return sample;
}

absl::StatusOr<Sample> ZeromqLimit::RoundTrips() {
  const auto count = static_cast<uint64_t>(load_.round_trips);
  std::vector<double> microseconds;
  for (uint64_t i = 0; i < count; ++i) {
    const absl::Time begin = MonotonicNow();
    Send(0);
    COVEY_RETURN_IF_ERROR(AwaitAnswer());
    microseconds.push_back(absl::ToDoubleMicroseconds(MonotonicNow() - begin));
  }
  return Sample{.values = {Quantile(microseconds, 0.5), Quantile(microseconds, 0.99),
                           Quantile(microseconds, 0.999)},
                .operations = count,
                .bytes = count * load_.bytes};
}

absl::Status ServeZeromqLimit(const std::string& endpoint) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pair);
  socket.bind(endpoint);
  COVEY_RETURN_IF_ERROR(PrintAddress(socket.get(zmq::sockopt::last_endpoint)));
  volatile uint64_t sum = 0;
  for (;;) {
    zmq::message_t message;
    if (!socket.recv(message, zmq::recv_flags::none)) continue;
    if (message.size() == kRoundTripBytes) {
      socket.send(message, zmq::send_flags::none);
      continue;
    }
    sum = sum + ReadThrough(message.data<uint8_t>(), message.size());
    zmq::message_t answer;
    socket.send(answer, zmq::send_flags::none);
  }
}

}  // namespace covey::cli
