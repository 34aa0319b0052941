// SPDX-License-Identifier: Apache-2.0
#include "server/host_agenda.h"

#include <algorithm>
#include <utility>

namespace covey::server {

void HostAgenda::BeginRound() {
  next_deadline_ = absl::InfiniteFuture();
  unopened_.clear();
}

void HostAgenda::Keep(ShardId id, ShardHost::Settled settled) {
  next_deadline_ = std::min(next_deadline_, settled.next_wake);
  if (settled.needs_open) {
    unopened_.insert(id);
  } else if (!unopened_.empty()) {
    unopened_.erase(id);
  }
  for (Replica::TakenCut& cut : settled.cuts) for_snapshots_.cuts.push_back({id, std::move(cut)});
  if (settled.cut_failure)
    for_snapshots_.failures.emplace_back(id, *std::move(settled.cut_failure));
  if (settled.load_from) for_snapshots_.loads.emplace_back(id, *std::move(settled.load_from));
  KeepReports(std::move(settled));
}

void HostAgenda::KeepReports(ShardHost::Settled settled) {
  for (auto& report : settled.reports) reports_.push_back(std::move(report));
}

void HostAgenda::SendReports(const Address& control_loop, Outbox& outbox) {
  if (reports_.empty()) return;
  Message message;
  message.set_to(control_loop);
  proto::ReplicaReportRequest& request = *message.envelope.mutable_replica_report_request();
  for (proto::ReplicaReport& report : reports_) *request.add_reports() = std::move(report);
  reports_.clear();
  outbox.Send(std::move(message));
}

std::optional<ShardId> HostAgenda::next_to_open() const {
  if (unopened_.empty()) return std::nullopt;
  return *unopened_.begin();
}

}  // namespace covey::server
