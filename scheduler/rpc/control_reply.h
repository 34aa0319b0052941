#pragma once

#include "common/net/message.h"

namespace covey::scheduler {

// True for what the scheduler is asked for, and answers.
bool IsControlRequest(const proto::Envelope& envelope);

// A reply to `request` with the empty body that belongs to it; without one when it is no control
// request. Pure.
Message MakeControlReply(const Message& request);

}  // namespace covey::scheduler
