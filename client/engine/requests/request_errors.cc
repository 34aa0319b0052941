// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/request_errors.h"

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"

namespace covey::client {
namespace {

std::string PushTo(const ClusterView& view, const ShardRequest& push) {
  return absl::StrCat("push to ", NameOf(view, push.shard));
}

}  // namespace

std::string NameOf(const ClusterView& view, ShardId shard) {
  const proto::Table* table = view.FindTable(shard.table);
  return absl::StrCat(
      "table=", table != nullptr ? table->spec().name() : absl::StrCat(shard.table.value()),
      " shard=", shard.index.value());
}

absl::Status NoReplyError(const ClusterView& view, const ShardRequest& request) {
  return absl::DeadlineExceededError(absl::StrCat(
      request.pushes ? "push " : "pull ", NameOf(view, request.shard), ": no answer from ",
      view.NameOf(request.head.node),
      request.state() == ShardRequest::State::kQueued ? " (still waiting for credit)" : "",
      " before the deadline, after ", request.tries, " tries",
      request.last_refusal.ok() ? ""
                                : absl::StrCat("; last refusal: ", request.last_refusal.message()),
      "; see `covey status`, or allow more time"));
}

absl::Status RowsRefusedError(const std::string& table, uint64_t rows) {
  return absl::FailedPreconditionError(absl::StrCat(
      "push of table '", table, "': it holds as many rows as it may (rows_max), and ", rows,
      " new ones were left out; all others were updated, so do not push again. Create the table "
      "with a larger rows_max, or with when_full EVICT (rows make room) or SKIP (no error)"));
}

absl::Status TableDroppedError(const ClusterView& view, ShardId shard) {
  return absl::NotFoundError(absl::StrCat(
      "table ", shard.table.value(), " was dropped at or before epoch ", view.epoch().value()));
}

absl::Status UnansweredPushError(const ClusterView& view, const ShardRequest& push) {
  return absl::DeadlineExceededError(absl::StrCat(PushTo(view, push), ": no answer yet from ",
                                                  view.NameOf(push.head.node),
                                                  "; see `covey status`"));
}

absl::Status NotDurableError(const ClusterView& view, const ShardRequest& push, size_t count) {
  return absl::DeadlineExceededError(
      absl::StrCat(PushTo(view, push), ": ", view.NameOf(push.head.node),
                   " has received it, and it is not durable yet (", count,
                   " pushes in all); see `covey status` for servers that are missing"));
}

absl::Status ContentLostError(const ClusterView& view, const ShardRequest& push) {
  return absl::DataLossError(absl::StrCat(
      PushTo(view, push), ": ", view.NameOf(push.head.node),
      " had received it, and the shard's content was lost with its servers; keep more replicas of "
      "the table to survive that"));
}

absl::Status RefusedForGoodError(const ClusterView& view, const ShardRequest& push,
                                 const absl::Status& refusal) {
  const auto code =
      absl::IsAborted(refusal) ? absl::StatusCode::kAborted : absl::StatusCode::kDataLoss;
  return absl::Status(
      code, absl::StrCat(PushTo(view, push), " had been received, and ",
                         view.NameOf(push.head.node), " refuses it now: ", refusal.message()));
}

absl::Status UnknownDurabilityError(const ClusterView& view, const ShardRequest& push,
                                    const absl::Status& why) {
  return Annotate(absl::StrCat(PushTo(view, push),
                               " was received, and it is not known whether it became durable"),
                  why);
}

}  // namespace covey::client
