// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/client_load.h"

#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "proto/table.pb.h"

namespace covey::cli {
namespace {

constexpr uint64_t kRoundTripBytes = 64;

using client::Handle;
using client::Table;

proto::TableSpec Spec(uint64_t bytes, uint32_t replicas) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("bench/", bytes, "/", replicas));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(bytes / sizeof(float));
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1e-6);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  spec.set_durability(replicas == 1 ? proto::MEMORY : proto::REPLICATED);
  if (replicas > 1) spec.set_replicas(replicas);
  return spec;
}

// Keeps `outstanding` operations in flight, each with a lane (its own memory), for `duration`;
// returns operations per second.
absl::StatusOr<double> Rate(int outstanding, absl::Duration duration,
                            const std::function<Handle(int lane)>& start) {
  std::deque<std::pair<int, Handle>> under_way;
  const absl::Time begin = MonotonicNow();
  for (int lane = 0; lane < outstanding; ++lane) under_way.emplace_back(lane, start(lane));
  uint64_t finished = 0;
  while (!under_way.empty()) {
    auto [lane, handle] = std::move(under_way.front());
    under_way.pop_front();
    COVEY_RETURN_IF_ERROR(handle.Wait());
    ++finished;
    if (MonotonicNow() - begin < duration) under_way.emplace_back(lane, start(lane));
  }
  return static_cast<double>(finished) / absl::ToDoubleSeconds(MonotonicNow() - begin);
}

absl::StatusOr<std::vector<double>> RoundTrips(int count,
                                               const std::function<Handle(int lane)>& start) {
  std::vector<double> microseconds;
  microseconds.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const absl::Time begin = MonotonicNow();
    COVEY_RETURN_IF_ERROR(start(0).Wait());
    microseconds.push_back(absl::ToDoubleMicroseconds(MonotonicNow() - begin));
  }
  return microseconds;
}

// The measurement of one operation on one table.
struct Measurement {
  std::function<Handle(int lane)> start;
  Figure rate, middle, tail;
};

// Measures the same operation on all tables in turns, so that a slowdown of the machine affects all
// of them alike.
absl::Status MeasureInTurns(std::vector<Measurement>& measurements, const LoadOptions& options) {
  for (const Measurement& measurement : measurements) {  // warm up
    const int outstanding = OutstandingFor(measurement.rate.bytes);
    COVEY_RETURN_IF_ERROR(Rate(outstanding, options.duration / 4, measurement.start).status());
  }
  for (int i = 0; i < options.repetitions; ++i) {
    for (auto& [start, rate, middle, tail] : measurements) {
      if (rate.bytes == kRoundTripBytes) {
        COVEY_ASSIGN_OR_RETURN(const auto trips, RoundTrips(options.round_trips, start));
        middle.repetitions.push_back(Quantile(trips, 0.5));
        tail.repetitions.push_back(Quantile(trips, 0.99));
      } else {
        COVEY_ASSIGN_OR_RETURN(const double per_second,
                               Rate(OutstandingFor(rate.bytes), options.duration, start));
        rate.repetitions.push_back(per_second * static_cast<double>(rate.bytes) / 1e9);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

int OutstandingFor(uint64_t bytes) { return bytes >= (64u << 20) ? 4 : 8; }

absl::StatusOr<std::vector<Figure>> MeasureClient(client::ParameterClient& client,
                                                  const std::string& transport,
                                                  const LoadOptions& options) {
  std::vector<Figure> figures;
  std::vector<uint64_t> sizes = {kRoundTripBytes};
  sizes.insert(sizes.end(), options.sizes.begin(), options.sizes.end());
  for (const uint64_t bytes : sizes) {
    std::vector<Table> tables;
    for (const uint32_t replicas : options.replicas) {
      COVEY_ASSIGN_OR_RETURN(tables.emplace_back(), client.CreateTable(Spec(bytes, replicas)));
    }
    // Lanes use different memory, as different tensors of a program would.
    const auto lanes = static_cast<size_t>(OutstandingFor(bytes));
    std::vector<std::vector<float>> gradients(lanes), values(lanes);
    for (auto& lane : gradients) lane.assign(bytes / sizeof(float), 0.5f);
    for (auto& lane : values) lane.assign(bytes / sizeof(float), 0.0f);
    using Start = std::function<Handle(const Table& table, int lane)>;
    const std::vector<std::pair<std::string, Start>> operations = {
        {"push", [&](const Table& t, int lane) { return client.Push(t, gradients[lane]); }},
        {"pull", [&](const Table& t, int lane) { return client.Pull(t, values[lane]); }},
        {"push_pull", [&](const Table& t,
                          int lane) { return client.PushPull(t, gradients[lane], values[lane]); }},
    };
    for (const auto& [name, start] : operations) {
      std::vector<Measurement> measurements;
      for (size_t i = 0; i < tables.size(); ++i) {
        const uint32_t replicas = options.replicas[i];
        const std::string chain = replicas == 1 ? "" : absl::StrCat(" r=", replicas);
        const auto row = [&](const char* suffix, const char* unit) {
          return Figure{.what = absl::StrCat("covey ", name, chain, suffix),
                        .transport = transport,
                        .bytes = bytes,
                        .unit = unit};
        };
        measurements.push_back(
            {.start = [&start, &table = tables[i]](int lane) { return start(table, lane); },
             .rate = row("", "GB/s"),
             .middle = row(" p50", "us"),
             .tail = row(" p99", "us")});
      }
      COVEY_RETURN_IF_ERROR(MeasureInTurns(measurements, options));
      for (Measurement& measurement : measurements) {
        for (Figure* figure : {&measurement.rate, &measurement.middle, &measurement.tail}) {
          if (figure->repetitions.empty()) continue;
          if (options.measured) options.measured(*figure);
          figures.push_back(std::move(*figure));
        }
      }
    }
    for (const Table& table : tables) COVEY_RETURN_IF_ERROR(client.DropTable(table.name));
  }
  return figures;
}

}  // namespace covey::cli
