// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/scheduler_reply.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "common/net/scheduler_failover.h"

namespace covey {

Message MakeSchedulerReply(const Message& request) {
  Message reply = MakeReply(request);
  reply.envelope.mutable_header()->set_job(request.envelope.header().job());
  reply.envelope.mutable_header()->set_node(request.envelope.to_node());
  return reply;
}

absl::Status OutcomeOf(const grpc::Status& status, const grpc::ClientContext& context,
                       absl::string_view addresses) {
  if (status.ok()) return absl::OkStatus();
  const absl::StatusCode code = static_cast<absl::StatusCode>(status.error_code());
  if (IsFromScheduler(status, context)) return absl::Status(code, status.error_message());
  return absl::Status(
      code, absl::StrCat("scheduler at ", addresses, " does not answer: ", status.error_message(),
                         "; check that it runs, that the address is right, and that --tls is given "
                         "to both or to neither"));
}

}  // namespace covey
