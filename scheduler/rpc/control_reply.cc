#include "scheduler/rpc/control_reply.h"

namespace covey::scheduler {

bool IsControlRequest(const proto::Envelope& envelope) {
  switch (envelope.body_case()) {
    case proto::Envelope::kRegisterRequest:
    case proto::Envelope::kHeartbeatRequest:
    case proto::Envelope::kWatchViewRequest:
    case proto::Envelope::kCreateTableRequest:
    case proto::Envelope::kDropTableRequest:
    case proto::Envelope::kSetContractRequest:
    case proto::Envelope::kDrainRequest:
    case proto::Envelope::kScaleRequest:
    case proto::Envelope::kReplicaReportRequest:
    case proto::Envelope::kWorkRequest:
    case proto::Envelope::kListTablesRequest:
    case proto::Envelope::kBarrierRequest:
    case proto::Envelope::kLeaveRequest:
    case proto::Envelope::kStatusRequest:
      return true;
    default:
      return false;
  }
}

Message MakeControlReply(const Message& request) {
  Message reply = MakeReply(request);
  proto::Envelope& envelope = reply.envelope;
  switch (request.envelope.body_case()) {
    case proto::Envelope::kRegisterRequest:
      envelope.mutable_register_reply();
      break;
    case proto::Envelope::kHeartbeatRequest:
      envelope.mutable_heartbeat_reply();
      break;
    case proto::Envelope::kWatchViewRequest:
      envelope.mutable_watch_view_reply();
      break;
    case proto::Envelope::kCreateTableRequest:
      envelope.mutable_create_table_reply();
      break;
    case proto::Envelope::kDropTableRequest:
      envelope.mutable_drop_table_reply();
      break;
    case proto::Envelope::kSetContractRequest:
      envelope.mutable_set_contract_reply();
      break;
    case proto::Envelope::kDrainRequest:
      envelope.mutable_drain_reply();
      break;
    case proto::Envelope::kScaleRequest:
      envelope.mutable_scale_reply();
      break;
    case proto::Envelope::kReplicaReportRequest:
      envelope.mutable_replica_report_reply();
      break;
    case proto::Envelope::kWorkRequest:
      envelope.mutable_work_reply();
      break;
    case proto::Envelope::kListTablesRequest:
      envelope.mutable_list_tables_reply();
      break;
    case proto::Envelope::kBarrierRequest:
      envelope.mutable_barrier_reply();
      break;
    case proto::Envelope::kLeaveRequest:
      envelope.mutable_leave_reply();
      break;
    case proto::Envelope::kStatusRequest:
      envelope.mutable_status_reply();
      break;
    default:
      break;
  }
  return reply;
}

}  // namespace covey::scheduler
