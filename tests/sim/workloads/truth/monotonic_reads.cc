// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/monotonic_reads.h"

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/truth/reply_description.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void MonotonicReads::OnReceive(absl::string_view receiver, const Message& message,
                               const ShardReply& reply) {
  // A later request's reply supersedes: the client ignores replies in flight to an earlier one.
  LastRead& last = last_read_[{message.to().node.value(), reply.history.shard}];
  const uint64_t request = message.envelope.header().request_id();
  if (request <= last.request) return;
  last.request = request;
  if (last.generation == reply.history.generation) {
    bool back = reply.state->version() < last.version;
    for (size_t i = 0; i < last.values.size(); ++i) {
      back = back || (last.values[i] != 0 && reply.values[i] == 0);
    }
    if (back) {
      violations_.Add(kStaleness, absl::StrCat(Describe(reply), ": what ", receiver,
                                               " reads went back from version ", last.version));
    }
  }
  last.generation = reply.history.generation;
  last.version = reply.state->version();
  last.values.assign(reply.values.begin(), reply.values.end());
}

}  // namespace covey::sim
