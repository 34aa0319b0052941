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

// What the command line asks of a scheduler. Neither class joins the cluster.

// Of several schedulers one leads: each is asked in turn, from the one that answered last, until
// one does that does not stand by.
//
// Blocks, for the deadline per scheduler at most. UNAVAILABLE: nobody answered, or all that did
// stand by; the message says so to a person.
class SchedulerStub {
 public:
  static constexpr absl::Duration kDeadline = absl::Seconds(2);

  // "host:port", or several: "host:port,host:port".
  explicit SchedulerStub(const std::string& addresses);
  ~SchedulerStub();

  absl::StatusOr<proto::StatusReply> GetStatus();
  absl::StatusOr<proto::ListTablesReply> ListTables();
  // Errors as ParameterClient::SetContract.
  absl::StatusOr<proto::SetContractReply> SetContract(const std::string& table,
                                                      const proto::Contract& contract);
  // NOT_FOUND, FAILED_PRECONDITION, INVALID_ARGUMENT: as proto/scheduler.proto says.
  absl::StatusOr<proto::DrainReply> Drain(const proto::DrainRequest& request);
  absl::StatusOr<proto::ScaleReply> Scale(const proto::ScaleRequest& request);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// Asks for the status again and again without blocking; for a loop that polls descriptors. Of
// several schedulers it asks one at a time: the one that answered last, and after one that is
// silent or stands by the next.
//
// Confined to one thread; gRPC's own threads only raise the descriptor.
class StatusPoller {
 public:
  // "host:port", or several: "host:port,host:port".
  explicit StatusPoller(const std::string& addresses);
  // Waits for a call under way, which it cancels.
  ~StatusPoller();

  // Readable once an answer is there.
  int descriptor() const { return descriptor_; }
  // Without effect while a question is open. Only events newer than those taken before come; of a
  // scheduler that was started anew, all.
  void Ask();
  // Whether a question is open: no answer was taken yet.
  bool asking() const { return call_ != nullptr; }
  // The answer, once; nothing while there is none. Errors as SchedulerStub, of the one asked.
  std::optional<absl::StatusOr<proto::StatusReply>> Take();

 private:
  struct Connection;
  struct Call;

  const int descriptor_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Call> call_;
  uint64_t last_event_ = 0;
  // Of the answer before; less means another scheduler, or this one anew.
  uint64_t uptime_ms_ = 0;
};

}  // namespace covey::cli
