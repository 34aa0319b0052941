// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/raw_pair.h"

#include <unistd.h>

#include <vector>
#include <zmq.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/runtime/event_loop.h"

namespace covey::cli {
namespace {

constexpr int kAnswerMilliseconds = 10000;

void Send(zmq::socket_t& socket, std::vector<uint8_t>& payload) {
  // The payload outlives the exchange: every message is answered before MeasureRawPair returns.
  zmq::message_t message(
      payload.data(), payload.size(), [](void*, void*) {}, nullptr);
  socket.send(message, zmq::send_flags::none);
}

bool AwaitAnswer(zmq::socket_t& socket) {
  zmq::message_t answer;
  return socket.recv(answer, zmq::recv_flags::none).has_value();
}

}  // namespace

absl::Status ServeRawPair(const std::string& endpoint) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pair);
  socket.bind(endpoint);
  if (!WriteAll(STDOUT_FILENO, socket.get(zmq::sockopt::last_endpoint) + "\n")) {
    return absl::UnavailableError("cannot write the address of the raw ZeroMQ pair");
  }
  for (;;) {
    zmq::message_t message;
    if (!socket.recv(message, zmq::recv_flags::none)) continue;
    zmq::message_t answer;
    socket.send(answer, zmq::send_flags::none);
  }
}

absl::StatusOr<std::vector<Figure>> MeasureRawPair(const std::string& address,
                                                   const std::string& transport,
                                                   const LoadOptions& options) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pair);
  socket.set(zmq::sockopt::rcvtimeo, kAnswerMilliseconds);
  socket.set(zmq::sockopt::linger, 0);
  socket.connect(address);
  const absl::Status lost =
      absl::UnavailableError(absl::StrCat("the raw peer at ", address, " does not answer"));

  std::vector<Figure> figures;
  std::vector<uint8_t> small(64);
  Figure middle{
      .what = "raw zeromq p50", .transport = transport, .bytes = small.size(), .unit = "us"};
  Figure tail{
      .what = "raw zeromq p99", .transport = transport, .bytes = small.size(), .unit = "us"};
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    std::vector<double> trips;
    for (int i = 0; i < options.round_trips; ++i) {
      const absl::Time begin = MonotonicNow();
      Send(socket, small);
      if (!AwaitAnswer(socket)) return lost;
      trips.push_back(absl::ToDoubleMicroseconds(MonotonicNow() - begin));
    }
    middle.repetitions.push_back(Quantile(trips, 0.5));
    tail.repetitions.push_back(Quantile(trips, 0.99));
  }
  for (Figure* figure : {&middle, &tail}) {
    if (options.measured) options.measured(*figure);
    figures.push_back(std::move(*figure));
  }

  for (const uint64_t bytes : options.sizes) {
    std::vector<uint8_t> payload(bytes);
    Figure rate{.what = "raw zeromq", .transport = transport, .bytes = bytes, .unit = "GB/s"};
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      const absl::Time begin = MonotonicNow();
      uint64_t sent = 0, answered = 0;
      for (; sent < static_cast<uint64_t>(OutstandingFor(bytes)); ++sent) Send(socket, payload);
      while (answered < sent) {
        if (!AwaitAnswer(socket)) return lost;
        ++answered;
        if (MonotonicNow() - begin < options.duration) {
          Send(socket, payload);
          ++sent;
        }
      }
      rate.repetitions.push_back(static_cast<double>(answered * bytes) / 1e9 /
                                 absl::ToDoubleSeconds(MonotonicNow() - begin));
    }
    if (options.measured) options.measured(rate);
    figures.push_back(std::move(rate));
  }
  return figures;
}

}  // namespace covey::cli
