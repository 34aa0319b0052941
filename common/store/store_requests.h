// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/net/message.h"
#include "common/store/folder.h"

namespace covey {

// Store requests as messages, for whatever carries them out: a thread, or a simulation.

// A StoreReply without status and content: of the request's own process, with its address, request
// id and StoreRequest.id.
Message StoreReplyTo(const Message& request);

// Carries the operation out; the reply says what has failed, and holds the bytes of a read in its
// frame. INVALID_ARGUMENT also for a message that is no StoreRequest or names no operation, and for
// a publication without exactly one frame. Blocks as `folder` does.
Message AnswerStoreRequest(const Message& request, Folder& folder);

// Bytes that the request writes and reads.
uint64_t BytesOfStoreRequest(const Message& request);

}  // namespace covey
