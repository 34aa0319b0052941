// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "common/net/message.h"

namespace covey {

// The control plane's methods, each named once. A node's calls (grpc/unary_calls.cc), the
// scheduler's service (scheduler/rpc/grpc_service.cc), its dispatch and its access rules are
// generated from this list, and control_methods_test.cc compares it with the service and the
// envelope. A new rpc needs its messages in proto/, a handler in RequestHandlers, and one line
// here.
//
//   X(Rpc, Stem, stem, access)
//     Rpc     of proto/scheduler_service.proto, and the name of the handler in RequestHandlers
//     Stem    its messages are StemRequest and StemReply
//     stem    they travel in an envelope's fields stem_request and stem_reply
//     access  see ControlAccess
#define COVEY_UNARY_CONTROL_METHODS(X)                             \
  X(Register, Register, register, kAnyone)                         \
  X(Heartbeat, Heartbeat, heartbeat, kNodes)                       \
  X(CreateTable, CreateTable, create_table, kNodes)                \
  X(InitializeTables, InitializeTables, initialize_tables, kNodes) \
  X(DropTable, DropTable, drop_table, kNodes)                      \
  X(SetContract, SetContract, set_contract, kAnyone)               \
  X(Drain, Drain, drain, kAnyone)                                  \
  X(Scale, Scale, scale, kAnyone)                                  \
  X(Quarantine, Quarantine, quarantine, kAnyone)                   \
  X(ReportReplicas, ReplicaReport, replica_report, kNodes)         \
  X(ReportSnapshot, SnapshotReport, snapshot_report, kNodes)       \
  X(CreateSnapshot, CreateSnapshot, create_snapshot, kAnyone)      \
  X(RestoreTables, RestoreTables, restore_tables, kAnyone)         \
  X(GetWork, Work, work, kNodes)                                   \
  X(ListTables, ListTables, list_tables, kAnyone)                  \
  X(Barrier, Barrier, barrier, kNodes)                             \
  X(Leave, Leave, leave, kNodes)                                   \
  X(GetStatus, Status, status, kAnyone)                            \
  X(StartTrace, StartTrace, start_trace, kAnyone)                  \
  X(ReportTrace, TraceReport, trace_report, kNodes)                \
  X(GetTrace, Trace, trace, kAnyone)

// The list with the one method that replies with a stream; its two ends are written by hand.
#define COVEY_CONTROL_METHODS(X) \
  COVEY_UNARY_CONTROL_METHODS(X) \
  X(WatchView, WatchView, watch_view, kAnyone)

enum class ControlAccess {
  kNodes,   // a node that has registered and is alive
  kAnyone,  // any caller, too: for commands that show or steer the cluster
};

// One method, as a value.
struct ControlMethod {
  absl::string_view rpc;
  proto::Envelope::BodyCase request;
  proto::Envelope::BodyCase reply;
  ControlAccess access;
};

inline constexpr ControlMethod kControlMethods[] = {
#define COVEY_CONTROL_METHOD(Rpc, Stem, stem, access) \
  {#Rpc, proto::Envelope::k##Stem##Request, proto::Envelope::k##Stem##Reply, ControlAccess::access},
    COVEY_CONTROL_METHODS(COVEY_CONTROL_METHOD)
#undef COVEY_CONTROL_METHOD
};

// The method of which `envelope` holds a request; null when it holds none. Pure.
const ControlMethod* FindControlMethod(const proto::Envelope& envelope);

// A reply to `request` with the empty body that belongs to it. Without a body when `request` is not
// a request of the control plane. Pure.
Message MakeControlReply(const Message& request);

}  // namespace covey
