// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace covey {

// The routing ids by which a ROUTER socket names its peers, as connection numbers
// (Message.connection). Pure.

// The connection of what has come from a peer that this process connected to. It has no routing id:
// a reply goes where the peer's address is routed to.
inline constexpr uint64_t kRoutedConnection = 1;

// The id that libzmq gives to a peer: a zero byte, then four of its own.
inline constexpr size_t kRoutingIdBytes = 5;
using RoutingId = std::array<uint8_t, kRoutingIdBytes>;

// The connection of the peer with this id. 0 when the peer chose the id itself, which our
// transports never do; neither 0 nor kRoutedConnection otherwise.
uint64_t PackRoutingId(std::span<const uint8_t> id);

// The id of the peer at this connection. Precondition: PackRoutingId has returned `connection`.
RoutingId UnpackRoutingId(uint64_t connection);

}  // namespace covey
