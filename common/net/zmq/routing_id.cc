// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/routing_id.h"

namespace covey {
namespace {

// Keeps every connection number apart from 0.
constexpr uint64_t kConnectionMark = uint64_t{1} << (8 * kRoutingIdBytes);

}  // namespace

uint64_t PackRoutingId(std::span<const uint8_t> id) {
  if (id.size() != kRoutingIdBytes || id[0] != 0) return 0;
  uint64_t connection = kConnectionMark;
  for (size_t i = 0; i < id.size(); ++i) connection |= uint64_t{id[i]} << (8 * i);
  return connection;
}

RoutingId UnpackRoutingId(uint64_t connection) {
  RoutingId id;
  for (size_t i = 0; i < id.size(); ++i) id[i] = static_cast<uint8_t>(connection >> (8 * i));
  return id;
}

}  // namespace covey
