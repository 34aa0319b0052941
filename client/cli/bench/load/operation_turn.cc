// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/load/operation_turn.h"

#include <deque>
#include <utility>

#include "client/cli/bench/measure/statistics.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// A turn measures at least this many operations.
constexpr uint64_t kOperationsMin = 4;

// Operations of all clients that are in flight, in the order in which they were started, and those
// that count: from the end of the first to the end of the last that was followed by another one.
// Neither the start of a turn nor its end, when fewer are in flight, is part of the rate.
class Flow {
 public:
  Flow(const std::vector<Start>& starts, const OperationTurn& turn) : starts_(starts), turn_(turn) {
    for (int lane = 0; lane < turn.outstanding; ++lane) {
      for (size_t client = 0; client < starts.size(); ++client) Begin({client, lane});
    }
  }

  bool empty() const { return in_flight_.empty(); }
  bool is_oldest_done() const { return !empty() && in_flight_.front().second.done(); }
  uint64_t finished() const { return finished_; }
  double gigabytes_per_second() const {
    return static_cast<double>(counted_ * turn_.bytes) / 1e9 /
           absl::ToDoubleSeconds(last_ - begin_);
  }

  // Waits for the oldest operation, and starts it again until the turn is over.
  absl::Status FinishOldest() {
    const auto [place, handle] = std::move(in_flight_.front());
    in_flight_.pop_front();
    COVEY_RETURN_IF_ERROR(handle.Wait());
    const absl::Time now = MonotonicNow();
    if (finished_++ == 0) {
      begin_ = now;
    } else if (refills_) {
      ++counted_;
      last_ = now;
    }
    refills_ = refills_ && (counted_ < kOperationsMin || now - begin_ < turn_.duration);
    if (refills_) Begin(place);
    return absl::OkStatus();
  }

 private:
  struct Place {
    size_t client;
    int lane;
  };

  void Begin(Place place) { in_flight_.emplace_back(place, starts_[place.client](place.lane)); }

  const std::vector<Start>& starts_;
  const OperationTurn& turn_;
  std::deque<std::pair<Place, client::Handle>> in_flight_;
  uint64_t finished_ = 0;
  uint64_t counted_ = 0;
  bool refills_ = true;
  absl::Time begin_, last_;
};

std::vector<double> TripValues(const std::vector<double>& microseconds) {
  return {Quantile(microseconds, 0.5), Quantile(microseconds, 0.99), Quantile(microseconds, 0.999)};
}

absl::StatusOr<double> Trip(const Start& start) {
  const absl::Time begin = MonotonicNow();
  COVEY_RETURN_IF_ERROR(start(0).Wait());
  return absl::ToDoubleMicroseconds(MonotonicNow() - begin);
}

}  // namespace

absl::StatusOr<Sample> RateOfAll(const std::vector<Start>& starts, const OperationTurn& turn) {
  Flow flow(starts, turn);
  while (!flow.empty()) COVEY_RETURN_IF_ERROR(flow.FinishOldest());
  return Sample{.values = {flow.gigabytes_per_second()},
                .operations = flow.finished(),
                .bytes = flow.finished() * turn.bytes};
}

absl::StatusOr<Sample> RoundTrips(const Start& start, const OperationTurn& turn) {
  const auto count = static_cast<uint64_t>(turn.round_trips);
  std::vector<double> microseconds(count);
  for (double& trip : microseconds) {
    COVEY_ASSIGN_OR_RETURN(trip, Trip(start));
  }
  return Sample{
      .values = TripValues(microseconds), .operations = count, .bytes = count * turn.bytes};
}

absl::StatusOr<Sample> OnePullAtATime(const Start& push, const Start& pull,
                                      const OperationTurn& turn) {
  Sample sample;
  double microseconds = 0;
  const absl::Time begin = MonotonicNow();
  while (sample.operations < kOperationsMin || MonotonicNow() - begin < turn.duration) {
    if (push != nullptr) COVEY_RETURN_IF_ERROR(push(0).Wait());
    COVEY_ASSIGN_OR_RETURN(const double trip, Trip(pull));
    microseconds += trip;
    ++sample.operations;
  }
  sample.bytes = sample.operations * turn.bytes;
  sample.values = {static_cast<double>(sample.bytes) / 1e3 / microseconds};
  return sample;
}

absl::StatusOr<Sample> SmallBesideLarge(const Start& large_push, const Start& small_pull,
                                        const OperationTurn& turn) {
  const std::vector<Start> starts = {large_push};
  Flow pushes(starts, turn);
  std::vector<double> microseconds;
  while (!pushes.empty()) {
    COVEY_ASSIGN_OR_RETURN(microseconds.emplace_back(), Trip(small_pull));
    while (pushes.is_oldest_done()) COVEY_RETURN_IF_ERROR(pushes.FinishOldest());
  }
  Sample sample = {.values = TripValues(microseconds),
                   .operations = pushes.finished(),
                   .bytes = pushes.finished() * turn.bytes};
  sample.values.push_back(pushes.gigabytes_per_second());
  return sample;
}

}  // namespace covey::cli
