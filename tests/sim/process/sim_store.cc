// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/sim_store.h"

#include <algorithm>
#include <utility>

#include "common/store/store_requests.h"

namespace covey::sim {
namespace {

// Number of the store's random stream; that of the scheduler's log is 0.
constexpr uint64_t kStoreDraws = uint64_t{1} << 32;

}  // namespace

SimStore::SimStore(Simulator& simulator, const Options& options)
    : simulator_(simulator),
      options_(options),
      random_(simulator.Draws(Simulator::Stream::kDisk, kStoreDraws)),
      folder_(std::make_unique<MemoryFolder>(options.lie)),
      faults_(simulator, "store", options.disk, random_) {}

void SimStore::Send(HostId host, Message request, std::function<void(Message)> done) {
  Host& at = hosts_[host];
  const absl::Time begin = std::max(at.busy_until, simulator_.now());
  const absl::Duration work = faults_.DrawDelay();
  const absl::Duration reply = faults_.DrawDelay();
  at.busy_until = begin + work + reply;
  simulator_.At(begin + work, [this, host, life = at.life, reply, request = std::move(request),
                               done = std::move(done)] {
    if (life == hosts_[host].life) CarryOut(host, request, reply, done);
  });
}

void SimStore::CarryOut(HostId host, const Message& request, absl::Duration until_reply,
                        std::function<void(Message)> done) {
  PlanFault(request.envelope.store_request());
  Message reply = AnswerStoreRequest(request, *folder_);
  folder_->ForgetFaults();
  simulator_.Note(folder_->operations());
  const bool succeeded = StatusOf(reply).ok();
  simulator_.Count(succeeded ? "store_done" : "store_failed");
  if (succeeded && on_done_) on_done_(simulator_.now(), request);
  simulator_.After(until_reply, [this, host, life = hosts_[host].life, reply = std::move(reply),
                                 done = std::move(done)] {
    if (life == hosts_[host].life) done(reply);
  });
}

void SimStore::PlanFault(const proto::StoreRequest& request) {
  if (!faults_.healed() && random_.Chance(options_.restarts)) Crash();
  faults_.Plan(*folder_, request.has_append() || request.has_publish());
}

void SimStore::Stop(HostId host) {
  ++hosts_[host].life;
  hosts_[host].busy_until = absl::InfinitePast();
}

void SimStore::Crash() {
  simulator_.Count("store_restarted");
  simulator_.Trace("the store restarts");
  folder_ = folder_->CrashState([this](uint64_t below) { return random_.Below(below); });
}

}  // namespace covey::sim
