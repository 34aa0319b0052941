// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"

namespace covey {

// These functions compare the sender of a message between data ports with the nodes of `view`. A
// node is one process: another one that gives its number, because it belongs to a former run of the
// job or pretends, has another incarnation. Pure.

// Null: the view has no such node, or the message is from another process.
inline const proto::Node* SenderOf(const Message& message, const ClusterView& view) {
  const proto::Node* const node = view.FindNode(message.from().node);
  return node != nullptr && Incarnation(node->incarnation()) == message.incarnation() ? node
                                                                                      : nullptr;
}

// Whether the message gives the number of a node of the view, and is from another process.
inline bool IsFromImpostor(const Message& message, const ClusterView& view) {
  return view.FindNode(message.from().node) != nullptr && SenderOf(message, view) == nullptr;
}

}  // namespace covey
