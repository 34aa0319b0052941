// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/run_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace covey::worker {

RunTable::~RunTable() = default;

CollectiveRun& RunTable::Add(Collective collective, std::shared_ptr<const Plan> plan,
                             const CollectiveRun::Options& options) {
  const uint64_t number = ++last_number_;
  numbers_[collective.id] = number;
  changed_.push_back(number);
  std::unique_ptr<CollectiveRun>& run = runs_[number];
  run = std::make_unique<CollectiveRun>(number, std::move(collective), std::move(plan), options);
  return *run;
}

CollectiveRun* RunTable::Find(const CollectiveId& id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? nullptr : runs_.at(found->second).get();
}

CollectiveRun* RunTable::Find(uint64_t number) const {
  const auto found = runs_.find(number);
  if (!failure_.ok() || found == runs_.end() || found->second->abandoned) return nullptr;
  return found->second.get();
}

absl::Status RunTable::Take(CollectiveRun& run, const Message& slice) {
  const size_t before = run.waiting_bytes();
  absl::Status taken = run.Take(slice);
  waiting_bytes_ += run.waiting_bytes() - before;
  Changed(run);
  return taken;
}

void RunTable::Released(uint64_t number) {
  // The run is still there: it waits for this frame.
  --runs_.at(number)->frames_out;
  changed_.push_back(number);
}

void RunTable::AbandonAll(const absl::Status& status) {
  stopped_ = status;
  for (const auto& [number, run] : runs_) {
    if (run->abandoned) continue;
    run->abandoned = true;
    ++abandoned_;
    numbers_.erase(run->collective().id);
    // Members of one process hold each other's frames.
    waiting_bytes_ -= run->waiting_bytes();
    run->Stop();
    changed_.push_back(number);
  }
}

void RunTable::FailAll(const absl::Status& status) {
  failure_ = status;
  for (const auto& [number, run] : runs_) changed_.push_back(number);
}

void RunTable::RunCallbacks(absl::Time now, absl::FunctionRef<void(absl::Duration)> took,
                            Outbox& outbox) {
  // A callback may start collectives and so come back here; what it finds is consistent.
  while (!changed_.empty()) {
    const auto found = runs_.find(changed_.front());
    changed_.pop_front();
    if (found == runs_.end()) continue;
    CollectiveRun& run = *found->second;
    const bool failed = !failure_.ok();
    if (!failed && !run.abandoned && run.arrived() && !run.told_arrived) {
      run.told_arrived = true;
      took(now - run.began);
      Changed(run);
      const Collective::Callback arrived = std::move(run.collective().arrived);
      if (arrived) arrived(now, run.result(), outbox);
      continue;
    }
    if (run.frames_out > 0 || !(failed || run.told_arrived || run.abandoned)) continue;
    const std::unique_ptr<CollectiveRun> over = std::move(found->second);
    runs_.erase(found);
    if (over->abandoned) {
      --abandoned_;
    } else {
      numbers_.erase(over->collective().id);
    }
    waiting_bytes_ -= over->waiting_bytes();
    CollectiveResult result = over->result();
    if (!over->told_arrived) result = {.status = over->abandoned ? stopped_ : failure_};
    if (over->collective().done) over->collective().done(now, result, outbox);
  }
}

absl::Time RunTable::deadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  for (const auto& [number, run] : runs_) {
    if (!run->abandoned) deadline = std::min(deadline, run->collective().deadline);
  }
  return deadline;
}

const CollectiveRun* RunTable::Overdue(absl::Time now) const {
  const CollectiveRun* overdue = nullptr;
  for (const auto& [number, run] : runs_) {
    if (run->abandoned || now < run->collective().deadline) continue;
    if (!run->WaitsFor().empty()) return run.get();
    if (overdue == nullptr) overdue = run.get();
  }
  return overdue;
}

void RunTable::BoundDeadlines(absl::Time latest) {
  for (auto& [number, run] : runs_) {
    run->collective().deadline = std::min(run->collective().deadline, latest);
  }
}

std::set<uint32_t> RunTable::WaitsFor() const {
  std::set<uint32_t> ranks;
  for (const auto& [number, run] : runs_) {
    if (run->abandoned) continue;
    for (const uint32_t rank : run->WaitsFor()) ranks.insert(rank);
  }
  return ranks;
}

void RunTable::TellPartialSums(absl::Time now, Outbox& outbox) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, run] : runs_) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    const auto found = runs_.find(number);
    if (found == runs_.end()) continue;
    CollectiveRun& run = *found->second;
    if (run.abandoned || run.told_arrived || run.collective().held) continue;
    run.told_arrived = true;
    const Collective::Callback arrived = std::move(run.collective().arrived);
    if (arrived) arrived(now, run.result(), outbox);
  }
}

}  // namespace covey::worker
