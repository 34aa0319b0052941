// SPDX-License-Identifier: Apache-2.0
#include "server/replica_reports.h"

#include <algorithm>

namespace covey::server {
namespace {

constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);
// A request with this many reports takes about 50 KiB.
constexpr int kReportsPerRequestMax = 1024;

bool IsSettled(const proto::ReplicaReport& report, const ClusterView& view) {
  const proto::Shard* shard = view.FindShard({TableId(report.table()), ShardIndex(report.shard())});
  // There are no reports about a table that is not in the view yet.
  if (shard == nullptr || shard->generation() != report.generation()) return true;
  if (report.kind() == proto::ReplicaReport::LOADED) {
    return view.FindTable(TableId(report.table()))->restore() == 0;
  }
  return shard->chain_epoch() > report.chain_epoch();
}

}  // namespace

void ReplicaReports::Add(absl::Time now, const proto::ReplicaReportRequest& request) {
  for (const proto::ReplicaReport& report : request.reports()) {
    const Key key{report.table(), report.shard(), report.node(), report.kind()};
    proto::ReplicaReport& known = reports_[key];
    if (known.chain_epoch() <= report.chain_epoch()) known = report;
  }
  next_ = now;
}

void ReplicaReports::FollowView(const ClusterView& view) {
  absl::erase_if(reports_, [&](const auto& entry) { return IsSettled(entry.second, view); });
}

void ReplicaReports::Wake(absl::Time now, Outbox& outbox) {
  if (reports_.empty() || now < next_) return;
  next_ = now + kAgainAfter;
  auto report = reports_.begin();
  while (report != reports_.end()) {
    Message message;
    message.set_to({kSchedulerNode, 0});
    message.envelope.mutable_header()->set_request_id(next_request_id_++);
    proto::ReplicaReportRequest& request = *message.envelope.mutable_replica_report_request();
    for (; report != reports_.end() && request.reports_size() < kReportsPerRequestMax; ++report) {
      *request.add_reports() = report->second;
    }
    outbox.Send(std::move(message));
  }
}

}  // namespace covey::server
