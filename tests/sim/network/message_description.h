// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/net/message.h"

namespace covey::sim {

// "push_request node 4.0 -> node 2.1 request 17", for traces. Pure.
std::string Describe(const Message& message);

}  // namespace covey::sim
