#include "tests/sim/checkers/shard_clocks.h"

namespace covey::sim {

void ShardClocks::OnSend(absl::Time, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  State& seen = states_[reply->history];
  std::map<uint32_t, uint64_t> clocks;
  for (const proto::GroupClock& clock : reply->state->clocks())
    clocks[clock.group()] = clock.step();
  bool back = reply->state->version() < seen.version || reply->state->samples() < seen.samples;
  for (const auto& [group, step] : seen.clocks) back = back || clocks[group] < step;
  if (back) {
    violations_.Add("shard_clocks",
                    absl::StrCat("shard ", reply->history.shard.index.value(), " generation ",
                                 reply->history.generation, " went back: version ", seen.version,
                                 " to ", reply->state->version(), ", samples ", seen.samples,
                                 " to ", reply->state->samples()));
  }
  seen = {reply->state->version(), reply->state->samples(), std::move(clocks)};
}

}  // namespace covey::sim
