// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey::client {

// Events of a client since its start.
struct Counters {
  uint64_t repeats = 0;           // requests that were sent again, with or without their bytes
  uint64_t refusals = 0;          // replies with RESOURCE_EXHAUSTED
  uint64_t damaged = 0;           // frames that differed from their checksum, here or at a server
  uint64_t strangers = 0;         // replies of somebody else than a server of the view, dropped
  uint64_t outdated_answers = 0;  // replies older, by version or generation, than the newest seen
  uint64_t key_bytes = 0;         // of keys of sparse tables, or of names in their place, sent
  uint64_t unknown_lists = 0;     // requests that named keys which their server did not keep
  uint64_t lost_pushes = 0;       // pushes that a server had received and that never became durable
  // Of the requests and replies of operations, without the headers of the network. About 30 bytes
  // of each request are left out, which say who sends it.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
};

}  // namespace covey::client
