// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot_reports.h"

#include <utility>

namespace covey::server {
namespace {

constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);

}  // namespace

void SnapshotReports::Add(absl::Time now, proto::SnapshotReportRequest report) {
  reports_.push_back({.request = std::move(report), .request_id = next_request_id_++});
  next_ = now;
}

void SnapshotReports::FollowView(const ClusterView& view) {
  const uint64_t ordered = view.proto().has_snapshot() ? view.proto().snapshot().id() : 0;
  std::erase_if(reports_, [ordered](const Report& report) {
    return report.request.snapshot() < ordered || ordered == 0;
  });
}

void SnapshotReports::OnReply(const Message& reply) {
  const uint64_t id = reply.envelope.header().request_id();
  if (!StatusOf(reply).ok()) return;
  std::erase_if(reports_, [id](const Report& report) { return report.request_id == id; });
}

void SnapshotReports::Wake(absl::Time now, Outbox& outbox) {
  if (reports_.empty() || now < next_) return;
  next_ = now + kAgainAfter;
  for (const Report& report : reports_) {
    Message message;
    message.set_to({kSchedulerNode, 0});
    message.envelope.mutable_header()->set_request_id(report.request_id);
    *message.envelope.mutable_snapshot_report_request() = report.request;
    outbox.Send(std::move(message));
  }
}

}  // namespace covey::server
