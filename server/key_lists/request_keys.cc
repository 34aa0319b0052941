// SPDX-License-Identifier: Apache-2.0
#include "server/key_lists/request_keys.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"

namespace covey::server {
namespace {

const proto::KeyList* ListOf(const proto::Envelope& envelope) {
  if (envelope.has_push_request()) {
    return envelope.push_request().has_keys() ? &envelope.push_request().keys() : nullptr;
  }
  return envelope.pull_request().has_keys() ? &envelope.pull_request().keys() : nullptr;
}

// Whether rows of the keys are looked up more than once: by later requests, or by the read that
// follows the update of this one.
bool IsUsedAgain(const proto::Envelope& envelope, const proto::KeyList& list) {
  return !NameOf(list).is_none() ||
         (envelope.has_push_request() && envelope.push_request().read().wanted());
}

}  // namespace

RequestKeys::RequestKeys(const Message& request, ShardId shard, KeyLists& lists)
    : request_(request),
      shard_(shard),
      owner_{.node = request.from().node, .incarnation = request.incarnation()},
      lists_(lists),
      list_(ListOf(request.envelope)) {}

absl::StatusOr<std::shared_ptr<const ListedKeys>> RequestKeys::Take(const SparseShard& shard) {
  COVEY_CHECK(list_ != nullptr);
  if (taken_ == nullptr) {
    COVEY_ASSIGN_OR_RETURN(taken_, IsNamed(*list_) ? Find() : Decode(shard));
  }
  return taken_;
}

absl::StatusOr<std::shared_ptr<const ListedKeys>> RequestKeys::Find() {
  std::shared_ptr<const ListedKeys> kept =
      lists_.Use(owner_, shard_, NameOf(*list_), list_->count());
  are_unknown_ = kept == nullptr;
  if (!are_unknown_) return kept;
  return absl::UnavailableError(absl::StrCat("the request names a list of ", list_->count(),
                                             " keys that is not kept here; send the keys"));
}

absl::StatusOr<std::shared_ptr<const ListedKeys>> RequestKeys::Decode(const SparseShard& shard) {
  if (list_->count() == 0) return std::make_shared<const ListedKeys>();
  const proto::Envelope& envelope = request_.envelope;
  if (request_.frames.empty() || !IsKeyFrame(*list_, request_.frames[0]) ||
      static_cast<size_t>(envelope.frame_checksums_size()) != request_.frames.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request names ", list_->count(),
                     " keys, and its first frame does not hold them; send ",
                     "the keys of the wanted rows, at most ", kKeysPerRequestMax));
  }
  if (FrameChecksum(request_.frames[0]) != envelope.frame_checksums(0)) {
    return absl::UnavailableError("the keys did not arrive as they were sent, send them again");
  }
  auto decoded = std::make_shared<ListedKeys>();
  COVEY_ASSIGN_OR_RETURN(decoded->keys, DecodedKeys(*list_, request_.frames[0]));
  COVEY_RETURN_IF_ERROR(shard.CheckHolds(decoded->spans()));
  const KeyListName name = NameOf(*list_);
  decoded->encoded.list.set_encoding(list_->encoding());
  decoded->encoded.list.set_count(list_->count());
  decoded->encoded.frame = name.is_none() ? request_.frames[0] : request_.frames[0].Kept();
  decoded->encoded.checksum = envelope.frame_checksums(0);
  if (IsUsedAgain(envelope, *list_)) decoded->places = std::make_shared<RowPlaces>();
  if (!name.is_none()) lists_.Keep(owner_, shard_, name, decoded);
  return decoded;
}

void RequestKeys::DescribeTo(Message& reply) const {
  if (list_ == nullptr) return;
  const KeyListName name = NameOf(*list_);
  const uint32_t kept = name.is_none() ? 0 : lists_.KeptWith(owner_, shard_, name);
  proto::Envelope& envelope = reply.envelope;
  if (envelope.has_push_reply()) {
    envelope.mutable_push_reply()->set_key_lists_kept(kept);
    envelope.mutable_push_reply()->set_keys_unknown(are_unknown_);
  } else {
    envelope.mutable_pull_reply()->set_key_lists_kept(kept);
    envelope.mutable_pull_reply()->set_keys_unknown(are_unknown_);
  }
}

}  // namespace covey::server
