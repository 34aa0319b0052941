// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/figures.h"

#include <algorithm>

#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "proto/table.pb.h"
#include "worker/examples/client_beside_worker.h"

namespace covey::synthetic {
namespace {

// Columns of one worker in the table.
enum : size_t { kGroup, kSteps, kSamples, kSeconds, kComputeSeconds, kNumbers };

constexpr char kBarrier[] = "synthetic/figures";
// Time-out of one attempt at the barrier; each attempt recounts the workers.
constexpr absl::Duration kAttempt = absl::Seconds(5);
constexpr absl::Duration kBetween = absl::Milliseconds(50);

// The same for all workers, however many peers each of them has seen.
proto::TableSpec TableOf() {
  proto::TableSpec spec;
  spec.set_name("synthetic/figures");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kTellingRanksMax * kNumbers);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

std::vector<Figures> FiguresOf(const std::vector<float>& numbers) {
  std::vector<Figures> figures;
  for (size_t first = 0; first < numbers.size(); first += kNumbers) {
    figures.push_back({.group = static_cast<uint32_t>(numbers[first + kGroup]),
                       .steps = static_cast<uint64_t>(numbers[first + kSteps]),
                       .samples = static_cast<uint64_t>(numbers[first + kSamples]),
                       .seconds = numbers[first + kSeconds],
                       .compute_seconds = numbers[first + kComputeSeconds]});
  }
  return figures;
}

}  // namespace

absl::Status MeetAtEnd(worker::Worker& worker, const Patience& patience) {
  const absl::Time until = patience.now() + patience.max;
  for (;;) {
    const absl::Status met = worker.Barrier(kBarrier, kAttempt);
    // A worker has died, is slow, or has seen more or fewer workers than this one so far.
    const bool is_for_now =
        absl::IsUnavailable(met) || absl::IsDeadlineExceeded(met) || absl::IsInvalidArgument(met);
    if (!is_for_now || patience.now() >= until) return met;
    COVEY_RETURN_IF_ERROR(patience.pause(kBetween));
  }
}

absl::StatusOr<std::vector<Figures>> GatherFigures(worker::Worker& worker,
                                                   const worker::WorkerConfig& config,
                                                   const Figures& own, const Patience& patience) {
  COVEY_ASSIGN_OR_RETURN(const auto client, examples::ConnectBesideWorker(config));
  COVEY_ASSIGN_OR_RETURN(const client::Table table, client->CreateTable(TableOf()));
  std::vector<float> numbers(kTellingRanksMax * kNumbers, 0);
  if (worker.rank() < kTellingRanksMax) {
    // The server subtracts a gradient; each worker fills in its own numbers, and zeros for the
    // others.
    float* mine = &numbers[worker.rank() * kNumbers];
    mine[kGroup] = -static_cast<float>(own.group);
    mine[kSteps] = -static_cast<float>(own.steps);
    mine[kSamples] = -static_cast<float>(own.samples);
    mine[kSeconds] = -static_cast<float>(own.seconds);
    mine[kComputeSeconds] = -static_cast<float>(own.compute_seconds);
    COVEY_RETURN_IF_ERROR(client->Push(table, numbers).Wait());
  }
  COVEY_RETURN_IF_ERROR(MeetAtEnd(worker, patience));
  COVEY_RETURN_IF_ERROR(client->Pull(table, numbers).Wait());
  std::vector<Figures> figures = FiguresOf(numbers);
  const auto has_any = [](const Figures& one) { return one.steps > 0; };
  const auto first = std::find_if(figures.begin(), figures.end(), has_any);
  if (first == figures.end() || first - figures.begin() != worker.rank()) {
    return std::vector<Figures>();
  }
  const auto last = std::find_if(figures.rbegin(), figures.rend(), has_any).base();
  figures.resize(std::max<size_t>(worker.size(), last - figures.begin()));
  return figures;
}

}  // namespace covey::synthetic
