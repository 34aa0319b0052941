// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/sim_log.h"

#include <utility>

#include "common/base/check.h"
#include "scheduler/log/testing/memory_log_folder.h"

namespace covey::sim {
namespace {

// A record that replaces the log takes about as many system calls.
constexpr uint64_t kCallsOfRecord = 8;

}  // namespace

SimLog::SimLog(Simulator& simulator, const Options& options, std::function<void()> end)
    : simulator_(simulator),
      options_(options),
      end_(std::move(end)),
      random_(simulator.Draws(Simulator::Stream::kDisk)),
      faults_(simulator, "log", options.disk, random_) {}

absl::StatusOr<std::optional<proto::LogRecord>> SimLog::Open() {
  faults_.Plan(*folder_, /*writes=*/true);
  auto log = scheduler::FileLog::Open(std::make_unique<scheduler::MemoryLogFolder>(*folder_),
                                      options_.file_bytes_max);
  folder_->ForgetFaults();
  if (!log.ok()) {
    // A crash damages no log, and nobody else writes to it.
    COVEY_CHECK(absl::IsUnavailable(log.status()));
    simulator_.Count("log_not_opened");
    return log.status();
  }
  log_ = *std::move(log);
  log_->SetReceiver([this](Message reply) { reply_ = std::move(reply); });
  return log_->recovered();
}

absl::Duration SimLog::Append(Message append, std::function<void(Message)> done) {
  COVEY_CHECK(log_ != nullptr && !pending_);
  pending_ = {std::move(append), std::move(done)};
  const absl::Duration takes = faults_.DrawDelay();
  simulator_.After(takes, [this, life = life_] {
    if (life == life_) Write();
  });
  if (!faults_.healed() && random_.Chance(options_.ends)) {
    simulator_.After(takes * random_.Uniform(), [this, life = life_] {
      if (life == life_ && !faults_.healed()) end_();
    });
  }
  return takes;
}

void SimLog::Write() {
  const Pending pending = *std::exchange(pending_, std::nullopt);
  faults_.Plan(*folder_, /*writes=*/true);
  log_->Send(pending.append);
  folder_->ForgetFaults();
  simulator_.Note(folder_->operations());
  if (!StatusOf(reply_).ok()) simulator_.Count("log_not_written");
  pending.done(std::move(reply_));
}

void SimLog::Stop() {
  ++life_;
  if (const auto pending = std::exchange(pending_, std::nullopt)) {
    simulator_.Count("log_torn");
    folder_->PlanFault(folder_->operations() + 1 + random_.Below(kCallsOfRecord),
                       MemoryFolder::Fault::kPowerCut);
    log_->Send(pending->append);
  }
  log_.reset();
  folder_->EndProcess();
  if (!random_.Chance(0.5)) return;
  simulator_.Count("log_machine_restarted");
  folder_ = folder_->CrashState([this](uint64_t below) { return random_.Below(below); });
}

}  // namespace covey::sim
