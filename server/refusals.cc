// SPDX-License-Identifier: Apache-2.0
#include "server/refusals.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace covey::server {
absl::Status WhyNotHere(const MisdirectedRequest& misdirected, const ClusterView& view,
                        const Address& self) {
  const auto& [request, id, generation] = misdirected;
  const std::string where =
      absl::StrCat("table=", id.table.value(), " shard=", id.index.value(), ": ");
  const Epoch epoch(request.envelope.header().epoch());
  if (view.epoch() < epoch) {
    return absl::UnavailableError(absl::StrCat(where, "view epoch ", view.epoch().value(),
                                               " is older than ", epoch.value(), ", retry"));
  }
  const proto::Table* table = view.FindTable(id.table);
  if (table == nullptr) {
    return absl::NotFoundError(absl::StrCat(where, "there is no such table in the view of epoch ",
                                            view.epoch().value(),
                                            "; create it first, or look up its name again"));
  }
  const proto::Shard* shard = view.FindShard(id);
  if (shard == nullptr) {
    return absl::NotFoundError(absl::StrCat(where, "table '", table->spec().name(), "' has ",
                                            table->shards_size(), " shards"));
  }
  const Address head = view.HeadOf(*shard);
  if (head != self) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, "by epoch ", view.epoch().value(), " it lives on ", view.NameOf(head.node), " loop ",
        head.loop, ", not on ", view.NameOf(self.node), " loop ", self.loop, "; follow that view"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(where, "its generation is ", shard->generation(), " in epoch ",
                   view.epoch().value(), ", the request names ", generation, "; follow that view"));
}

std::optional<Message> RefusalToStranger(const Message& message, const proto::ChainPosition& chain,
                                         const ClusterView& view, const Address& self) {
  if (message.envelope.has_replicate_reply()) return std::nullopt;
  const proto::Shard* shard = view.FindShard({TableId(chain.table()), ShardIndex(chain.shard())});
  // A table that is missing from the view was dropped, or is not in it yet.
  const uint64_t epoch = shard != nullptr ? shard->chain_epoch() : view.epoch().value();
  if (epoch <= chain.chain_epoch()) return std::nullopt;
  Message reply = MakeReply(message);
  proto::ChainPosition& newer = *reply.envelope.mutable_replicate_reply()->mutable_chain();
  newer = chain;
  newer.set_chain_epoch(epoch);
  SetStatus(
      absl::AbortedError(absl::StrCat("by the chain of epoch ", epoch, " ", view.NameOf(self.node),
                                      " has no part in this shard; follow the newer view")),
      reply);
  return reply;
}

}  // namespace covey::server
