// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/answered_pushes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void AnsweredPushes::NoteView(const proto::ClusterView& view) {
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const auto full = std::count_if(shard.chain().begin(), shard.chain().end(),
                                      [](const proto::Replica& r) { return !r.joining(); });
      if (full < 2) alone_.insert({TableId(table.id()), ShardIndex(shard.index())});
    }
  }
}

void AnsweredPushes::OnSend(absl::Time now, const Message& message) {
  const uint64_t request = message.envelope.header().request_id();
  if (message.envelope.has_push_reply()) {
    const auto push = pushes_.find({message.to().node.value(), request});
    if (push != pushes_.end() && StatusOf(message).ok()) push->second.is_answered = true;
    return;
  }
  if (const proto::ClusterView* const view = PublishedView(message)) return NoteView(*view);
  if (!message.envelope.has_push_request()) return;
  const proto::PushRequest& body = message.envelope.push_request();
  if (body.has_read() || body.initialization_epoch() != 0) return;
  Push& push =
      pushes_.try_emplace({message.from().node.value(), request}, Push{.since = now}).first->second;
  // A sender repeats a push until it is answered or given up, so a repetition says that it waits.
  const ShardId shard{TableId(body.id().table()), ShardIndex(body.id().shard())};
  // The scheduler waits for a part in 16 more, and its clock may be slow.
  const absl::Duration lease = alone_.contains(shard) ? bounds_.lease * 1.125 : absl::Duration();
  if (push.is_answered || WaitOf(now, push) <= bounds_.within + lease) return;
  violations_.Add("answered_pushes",
                  absl::StrCat("the push of request ", request, " of node ",
                               message.from().node.value(), " has not been answered for ",
                               absl::FormatDuration(WaitOf(now, push)), " without any fault"));
}

}  // namespace covey::sim
