// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/counted_samples.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/truth/reply_description.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void CountedSamples::NotePush(const proto::PushRequest& push) {
  // A query has none, and a step without gradients neither.
  if (push.group() == 0 || push.samples() == 0) return;
  const ShardId shard{TableId(push.id().table()), ShardIndex(push.id().shard())};
  const auto [known, is_new] = samples_.try_emplace(
      {shard, {GroupId(push.group()), Step(push.step())}}, Range{push.samples(), push.samples()});
  if (is_new) return;
  known->second.least = std::min(known->second.least, push.samples());
  known->second.most = std::max(known->second.most, push.samples());
}

void CountedSamples::Check(const ShardReply& reply) {
  Range range;
  double sum = 0;
  for (uint64_t element = 0; element < reply.values.size(); ++element) {
    if (reply.values[element] == 0) continue;
    sum += reply.values[element];
    const GroupId group = elements_.groups().at(element / elements_.steps());
    const Step step(element % elements_.steps() + 1);
    const auto pushed = samples_.find({reply.history.shard, {group, step}});
    if (pushed == samples_.end()) continue;
    range.most += pushed->second.most;
    // The value of this step may hold a share of another step's gradient.
    const GivenGradients::Place place{group, step, reply.history.shard.table};
    if (given_ == nullptr || !given_->MayBeElsewhere(place)) range.least += pushed->second.least;
  }
  const uint64_t samples = reply.state->samples();
  if (samples < range.least || samples > range.most) {
    violations_.Add(kStaleness, absl::StrCat(Describe(reply), " counts ", samples,
                                             " samples, and the steps in its values have ",
                                             range.least, " to ", range.most));
  }
  const auto version = static_cast<double>(reply.state->version());
  if (given_ == nullptr && std::fabs(sum - version) > 0.01) {
    violations_.Add(kStaleness, absl::StrCat(Describe(reply), " has values with the sum ", sum));
  }
}

}  // namespace covey::sim
