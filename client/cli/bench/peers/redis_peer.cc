// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/redis_peer.h"

#include <poll.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/measure/statistics.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kStartMax = absl::Seconds(10);
constexpr int kStartPollMilliseconds = 20;
constexpr absl::string_view kStored = "+OK\r\n";
constexpr absl::string_view kLineEnd = "\r\n";

// An argument of a command in the protocol of Redis, without its bytes.
std::string LengthOf(uint64_t bytes) { return absl::StrCat("$", bytes, kLineEnd); }

std::string Argument(absl::string_view text) {
  return absl::StrCat(LengthOf(text.size()), text, kLineEnd);
}

std::string KeyOf(size_t lane) { return absl::StrCat("lane", lane); }

absl::StatusOr<BlockingSocket> Connect(const LimitLoad& load, const std::string& path,
                                       uint16_t port) {
  return load.transport == "tcp" ? BlockingSocket::ConnectTcp(port)
                                 : BlockingSocket::ConnectUnix(path);
}

// The server needs a moment until it listens.
absl::StatusOr<BlockingSocket> ConnectWhenReady(const LimitLoad& load, const std::string& path,
                                                uint16_t port, ChildProcess& server) {
  const absl::Time until = MonotonicNow() + kStartMax;
  for (;;) {
    absl::StatusOr<BlockingSocket> socket = Connect(load, path, port);
    if (socket.ok() || server.Reap().has_value() || MonotonicNow() >= until) return socket;
    poll(nullptr, 0, kStartPollMilliseconds);
  }
}

Figure Row(const std::string& what, const std::string& unit, const LimitLoad& load) {
  return {.what = what, .transport = load.transport, .bytes = load.bytes, .unit = unit};
}

}  // namespace

RedisPeer::RedisPeer(const LimitLoad& load, std::unique_ptr<TemporaryFolder> folder,
                     std::unique_ptr<ChildProcess> server, BlockingSocket socket)
    : load_(load),
      folder_(std::move(folder)),
      server_(std::move(server)),
      socket_(std::move(socket)),
      lanes_(MakeLanes(load.bytes, load.lanes)) {}

absl::StatusOr<std::unique_ptr<RedisPeer>> RedisPeer::Start(const LimitLoad& load) {
  if (!FindProgram("redis-server").ok()) {
    return absl::NotFoundError("not installed: apt-get install redis-server");
  }
  COVEY_ASSIGN_OR_RETURN(auto folder, TemporaryFolder::Make());
  COVEY_ASSIGN_OR_RETURN(const uint16_t port, FreeTcpPort());
  const std::string path = folder->path() + "/redis";
  COVEY_ASSIGN_OR_RETURN(
      auto server,
      ChildProcess::Start({.name = "redis-server",
                           .arguments = {"redis-server", "--bind", "127.0.0.1", "--port",
                                         load.transport == "tcp" ? absl::StrCat(port) : "0",
                                         "--unixsocket", path, "--dir", folder->path(), "--save",
                                         "", "--appendonly", "no", "--loglevel", "warning"}}));
  COVEY_ASSIGN_OR_RETURN(BlockingSocket socket, ConnectWhenReady(load, path, port, *server));
  auto peer = absl::WrapUnique(
      new RedisPeer(load, std::move(folder), std::move(server), std::move(socket)));
  COVEY_RETURN_IF_ERROR(peer->FillLanes());
  return peer;
}

absl::Status RedisPeer::SendSet(size_t lane) {
  const std::string head = absl::StrCat("*3", kLineEnd, Argument("SET"), Argument(KeyOf(lane)),
                                        LengthOf(lanes_[lane].size()));
  COVEY_RETURN_IF_ERROR(socket_.Send(head.data(), head.size()));
  COVEY_RETURN_IF_ERROR(socket_.Send(lanes_[lane].data(), lanes_[lane].size()));
  return socket_.Send(kLineEnd.data(), kLineEnd.size());
}

absl::Status RedisPeer::SendGet(size_t lane) {
  const std::string command = absl::StrCat("*2", kLineEnd, Argument("GET"), Argument(KeyOf(lane)));
  return socket_.Send(command.data(), command.size());
}

absl::Status RedisPeer::TakeSetAnswer() {
  std::string answer(kStored.size(), '\0');
  COVEY_RETURN_IF_ERROR(socket_.Receive(answer.data(), answer.size()));
  return answer == kStored ? absl::OkStatus()
                           : absl::InternalError("redis-server refused to store a value");
}

absl::Status RedisPeer::TakeGetAnswer(size_t lane) {
  LaneMemory& memory = lanes_[lane];
  const std::string expected = LengthOf(memory.size());
  std::string head(expected.size(), '\0'), end(kLineEnd.size(), '\0');
  COVEY_RETURN_IF_ERROR(socket_.Receive(head.data(), head.size()));
  if (head != expected) return absl::InternalError("redis-server has lost a value");
  COVEY_RETURN_IF_ERROR(socket_.Receive(memory.data(), memory.size()));
  return socket_.Receive(end.data(), end.size());
}

absl::Status RedisPeer::FillLanes() {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    COVEY_RETURN_IF_ERROR(SendSet(lane));
    COVEY_RETURN_IF_ERROR(TakeSetAnswer());
  }
  return absl::OkStatus();
}

absl::StatusOr<Sample> RedisPeer::Set() {
  uint64_t sent = 0, answered = 0;
  const absl::Time begin = MonotonicNow();
  while (sent < lanes_.size()) COVEY_RETURN_IF_ERROR(SendSet(sent++));
  while (answered < sent) {
    COVEY_RETURN_IF_ERROR(TakeSetAnswer());
    ++answered;
    if (MonotonicNow() - begin >= load_.duration) continue;
    COVEY_RETURN_IF_ERROR(SendSet(sent++ % lanes_.size()));
  }
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
  return Sample{.values = {static_cast<double>(answered * load_.bytes) / 1e9 / seconds},
                .operations = answered,
                .bytes = answered * load_.bytes};
}

absl::StatusOr<Sample> RedisPeer::Get() {
  uint64_t sent = 0, answered = 0;
  const absl::Time begin = MonotonicNow();
  while (sent < lanes_.size()) COVEY_RETURN_IF_ERROR(SendGet(sent++));
  while (answered < sent) {
    COVEY_RETURN_IF_ERROR(TakeGetAnswer(answered % lanes_.size()));
    ++answered;
    if (MonotonicNow() - begin >= load_.duration) continue;
    COVEY_RETURN_IF_ERROR(SendGet(sent++ % lanes_.size()));
  }
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
  return Sample{.values = {static_cast<double>(answered * load_.bytes) / 1e9 / seconds},
                .operations = answered,
                .bytes = answered * load_.bytes};
}

absl::StatusOr<Sample> RedisPeer::RoundTrips() {
  const auto count = static_cast<uint64_t>(load_.round_trips);
  std::vector<double> microseconds;
  for (uint64_t i = 0; i < count; ++i) {
    const absl::Time begin = MonotonicNow();
    COVEY_RETURN_IF_ERROR(SendGet(0));
    COVEY_RETURN_IF_ERROR(TakeGetAnswer(0));
    microseconds.push_back(absl::ToDoubleMicroseconds(MonotonicNow() - begin));
  }
  return Sample{.values = {Quantile(microseconds, 0.5), Quantile(microseconds, 0.99),
                           Quantile(microseconds, 0.999)},
                .operations = count,
                .bytes = count * load_.bytes};
}

std::vector<Contender> MakeRedisPeers(const LimitLoad& load, std::vector<std::string>& left_out) {
  auto started = RedisPeer::Start(load);
  if (!started.ok()) {
    left_out.push_back(absl::StrCat("redis: ", started.status().message()));
    return {};
  }
  const std::shared_ptr<RedisPeer> redis = *std::move(started);
  if (load.bytes == kRoundTripBytes) {
    return {{.rows = {Row("redis p50", "us", load), Row("redis p99", "us", load),
                      Row("redis p99.9", "us", load)},
             .measure = [redis] { return redis->RoundTrips(); }}};
  }
  return {{.rows = {Row("redis set", "GB/s", load)}, .measure = [redis] { return redis->Set(); }},
          {.rows = {Row("redis get", "GB/s", load)}, .measure = [redis] { return redis->Get(); }}};
}

}  // namespace covey::cli
