// SPDX-License-Identifier: Apache-2.0
#include "common/net/control_methods.h"

namespace covey {

const ControlMethod* FindControlMethod(const proto::Envelope& envelope) {
  for (const ControlMethod& method : kControlMethods) {
    if (method.request == envelope.body_case()) return &method;
  }
  return nullptr;
}

Message MakeControlReply(const Message& request) {
  Message reply = MakeReply(request);
  switch (request.envelope.body_case()) {
#define COVEY_SET_BODY(Rpc, Stem, stem, access) \
  case proto::Envelope::k##Stem##Request:       \
    reply.envelope.mutable_##stem##_reply();    \
    break;
    COVEY_CONTROL_METHODS(COVEY_SET_BODY)
#undef COVEY_SET_BODY
    default:
      break;
  }
  return reply;
}

}  // namespace covey
