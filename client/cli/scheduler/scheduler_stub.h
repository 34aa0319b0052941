// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// Requests of the command line to a scheduler. Neither class joins the cluster.

// Where the schedulers are, and what a command shows them.
struct SchedulerTarget {
  // "host:port", or several: "host:port,host:port".
  std::string addresses;
  // The folder of the certificate of this command's user; empty = none.
  std::string tls;
};

// Of several schedulers one leads. They are tried in turn, beginning with the one that answered
// last, until one answers that is not a standby.
//
// Blocks, at most for the deadline per scheduler. UNAVAILABLE: no scheduler answered, or only
// standbys did; the message tells a user which. FAILED_PRECONDITION: the folder of the certificate
// is not right.
class SchedulerStub {
 public:
  static constexpr absl::Duration kDeadline = absl::Seconds(2);

  explicit SchedulerStub(const SchedulerTarget& target);
  ~SchedulerStub();

  // Waits until the scheduler that is asked next is connected; false = not within `timeout`.
  // gRPC advances a handshake only inside a call, so a client that only polls may need many polls.
  bool AwaitConnection(absl::Duration timeout);

  absl::StatusOr<proto::StatusReply> GetStatus();
  absl::StatusOr<proto::ListTablesReply> ListTables();
  // Errors as ParameterClient::SetContract.
  absl::StatusOr<proto::SetContractReply> SetContract(const std::string& table,
                                                      const proto::Contract& contract);
  // NOT_FOUND, FAILED_PRECONDITION, INVALID_ARGUMENT: see proto/scheduler.proto.
  absl::StatusOr<proto::DrainReply> Drain(const proto::DrainRequest& request);
  absl::StatusOr<proto::ScaleReply> Scale(const proto::ScaleRequest& request);
  // NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED: see proto/scheduler.proto.
  absl::StatusOr<proto::QuarantineReply> Quarantine(const proto::QuarantineRequest& request);
  // FAILED_PRECONDITION: the job has no store.
  absl::StatusOr<proto::CreateSnapshotReply> CreateSnapshot();
  // FAILED_PRECONDITION, INVALID_ARGUMENT: see proto/scheduler.proto.
  absl::StatusOr<proto::RestoreTablesReply> RestoreTables(
      const proto::RestoreTablesRequest& request);
  // FAILED_PRECONDITION, NOT_FOUND: see proto/scheduler.proto.
  absl::StatusOr<proto::StartTraceReply> StartTrace(const proto::StartTraceRequest& request);
  absl::StatusOr<proto::TraceReply> GetTrace(const proto::TraceRequest& request);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// Polls the status without blocking; for a loop that polls descriptors. Of several schedulers it
// queries one at a time: the one that answered last, and after a silent one or a standby the next.
//
// Confined to one thread; gRPC's own threads only signal the descriptor.
class StatusPoller {
 public:
  explicit StatusPoller(const SchedulerTarget& target);
  // Cancels a pending call, and waits for it.
  ~StatusPoller();

  // Readable once a reply has arrived.
  int descriptor() const { return descriptor_; }
  // No effect while a request is pending. The reply has only events that are newer than those taken
  // before; after a restart of the scheduler it has all.
  void Ask();
  // Whether a request is pending: its reply has not been taken yet.
  bool asking() const { return call_ != nullptr; }
  // The reply, once; nothing while there is none. Errors as SchedulerStub, for the one that was
  // queried.
  std::optional<absl::StatusOr<proto::StatusReply>> Take();

 private:
  struct Connection;
  struct Call;

  const int descriptor_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Call> call_;
  uint64_t last_event_ = 0;
  // Of the previous reply; a smaller one means another scheduler, or a restart of this one.
  uint64_t uptime_ms_ = 0;
};

}  // namespace covey::cli
