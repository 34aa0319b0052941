#include "client/cli/bench/client_load.h"

#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"

namespace covey::cli {
namespace {

constexpr uint64_t kRoundTripBytes = 64;

using client::Handle;
using client::Table;

proto::TableSpec Spec(uint64_t bytes) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("bench/", bytes));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(bytes / sizeof(float));
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1e-6);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

// Keeps `outstanding` operations under way, each with a lane (its own memory), for `duration`;
// operations per second.
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

struct Operation {
  std::string name;
  std::function<Handle(int lane)> start;
};

}  // namespace

int OutstandingFor(uint64_t bytes) { return bytes >= (64u << 20) ? 4 : 8; }

absl::StatusOr<std::vector<Figure>> MeasureClient(client::ParameterClient& client,
                                                  const std::string& transport,
                                                  const LoadOptions& options) {
  std::vector<Figure> figures;
  std::vector<uint64_t> sizes = {kRoundTripBytes};
  sizes.insert(sizes.end(), options.sizes.begin(), options.sizes.end());
  for (const uint64_t bytes : sizes) {
    COVEY_ASSIGN_OR_RETURN(const Table table, client.CreateTable(Spec(bytes)));
    const int outstanding = OutstandingFor(bytes);
    // Lanes write different memory, as different tensors of a program would.
    std::vector<std::vector<float>> gradients(outstanding), values(outstanding);
    for (auto& lane : gradients) lane.assign(table.elements, 0.5f);
    for (auto& lane : values) lane.assign(table.elements, 0.0f);
    const std::vector<Operation> operations = {
        {"push", [&](int lane) { return client.Push(table, gradients[lane]); }},
        {"pull", [&](int lane) { return client.Pull(table, values[lane]); }},
        {"push_pull",
         [&](int lane) { return client.PushPull(table, gradients[lane], values[lane]); }},
    };
    for (const Operation& operation : operations) {
      COVEY_RETURN_IF_ERROR(
          Rate(outstanding, options.duration / 4, operation.start).status());  // warm up
      const auto row = [&](const std::string& suffix, const char* unit) {
        return Figure{.what = absl::StrCat("covey ", operation.name, suffix),
                      .transport = transport,
                      .bytes = bytes,
                      .unit = unit};
      };
      Figure rate = row("", "GB/s"), middle = row(" p50", "us"), tail = row(" p99", "us");
      for (int i = 0; i < options.repetitions; ++i) {
        if (bytes == kRoundTripBytes) {
          COVEY_ASSIGN_OR_RETURN(const auto trips,
                                 RoundTrips(options.round_trips, operation.start));
          middle.repetitions.push_back(Quantile(trips, 0.5));
          tail.repetitions.push_back(Quantile(trips, 0.99));
        } else {
          COVEY_ASSIGN_OR_RETURN(const double per_second,
                                 Rate(outstanding, options.duration, operation.start));
          rate.repetitions.push_back(per_second * static_cast<double>(bytes) / 1e9);
        }
      }
      for (Figure* figure : {&rate, &middle, &tail}) {
        if (figure->repetitions.empty()) continue;
        if (options.measured) options.measured(*figure);
        figures.push_back(std::move(*figure));
      }
    }
    COVEY_RETURN_IF_ERROR(client.DropTable(table.name));
  }
  return figures;
}

}  // namespace covey::cli
