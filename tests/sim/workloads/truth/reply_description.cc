// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/reply_description.h"

#include "absl/strings/str_cat.h"

namespace covey::sim {

std::string Describe(const ShardReply& reply) {
  return absl::StrCat("shard ", reply.history.shard.index.value(), " generation ",
                      reply.history.generation, " version ", reply.state->version());
}

}  // namespace covey::sim
