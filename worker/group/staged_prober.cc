// SPDX-License-Identifier: Apache-2.0
#include "worker/group/staged_prober.h"

#include <algorithm>

#include "common/base/check.h"

namespace covey::worker {

void StagedProber::Begin(absl::Time now, size_t peers, const Options& options) {
  COVEY_CHECK(!options.stages.empty());
  options_ = options;
  peers_ = peers;
  peer_ = 0;
  probes_.clear();
  trips_.clear();
  BeginPeer(now);
}

void StagedProber::End() {
  peer_ = peers_;
  probes_.clear();
  deadline_ = absl::InfiniteFuture();
}

void StagedProber::BeginPeer(absl::Time now) {
  deadline_ = absl::InfiniteFuture();
  step_ = 0;
  if (done()) return;
  contact_until_ = now + options_.contact_max;
  BeginStage(now);
}

void StagedProber::BeginStage(absl::Time now) {
  returned_ = number_;
  Send(now);
}

void StagedProber::Send(absl::Time now) {
  for (uint32_t i = 0; i < stage().messages; ++i) {
    probes_.push_back({.peer = peer_, .number = ++number_, .bytes = stage().bytes});
  }
  sent_ = now;
  deadline_ = now + (step_ == 0 ? options_.contact_every : options_.patience);
}

void StagedProber::Echo(absl::Time now, size_t peer, uint64_t number) {
  if (done() || peer != peer_ || number <= returned_ || number > number_) return;
  if (step_ == 0) {
    // Whichever try it answers.
    returned_ = number_;
  } else {
    if (number != returned_ + 1) return;
    if (++returned_ < number_) return;
  }
  const absl::Duration took = now - sent_;
  EndStage(took, /*is_late=*/false);
  const bool slow = stage().bytes > 0 && took > options_.slow;
  if (step_ == options_.stages.size() || slow) {
    ++peer_;
    BeginPeer(now);
  } else {
    ++step_;
    BeginStage(now);
  }
}

void StagedProber::EndStage(absl::Duration took, bool is_late) {
  if (step_ == 0) return;
  trips_.push_back({.peer = peer_, .stage = stage(), .took = took, .is_late = is_late});
}

void StagedProber::Wake(absl::Time now) {
  if (now < deadline_) return;
  if (step_ == 0 && now < contact_until_) return Send(now);
  EndStage(now - sent_, /*is_late=*/true);
  ++peer_;
  BeginPeer(now);
}

Buffer ProbeFrame(size_t bytes) {
  Buffer zeros = Buffer::Allocate(bytes);
  std::fill_n(zeros.MutableData(), bytes, 0);
  return zeros;
}

}  // namespace covey::worker
