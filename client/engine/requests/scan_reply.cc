// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/scan_reply.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/active_operations.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/tensor/codec.h"

namespace covey::client {
namespace {

absl::Status Unfit(const ShardRequest& request, absl::string_view why) {
  return absl::InternalError(absl::StrCat("scan of shard ", request.shard.index.value(),
                                          " of table ", request.shard.table.value(), ": ", why,
                                          "; report this as a bug of the server"));
}

template <typename T>
void CopyTo(const Buffer& frame, std::vector<T>& to) {
  to.resize(frame.size() / sizeof(T));
  std::memcpy(to.data(), frame.data(), frame.size());
}

}  // namespace

absl::Status CheckScanFrames(const ShardRequest& request, const Message& reply) {
  const proto::ScannedRows& scanned = reply.envelope.pull_reply().scanned();
  const size_t row_bytes =
      EncodedBytes(request.owner->row_type, request.owner->operation.scan->width);
  std::vector<size_t> sizes;
  if (scanned.rows() > 0) {
    sizes = {scanned.rows() * sizeof(uint64_t), scanned.rows() * row_bytes};
  }
  if (scanned.removed() > 0) sizes.push_back(scanned.removed() * sizeof(uint64_t));
  bool fits = reply.frames.size() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = reply.frames[i].size() == sizes[i];
  if (fits) return absl::OkStatus();
  return Unfit(request, absl::StrCat("the answer names ", scanned.rows(), " rows and ",
                                     scanned.removed(), " removed keys, and has ",
                                     reply.frames.size(), " frames of other sizes"));
}

absl::Status TakeScannedRows(const ShardRequest& request, const Message& reply,
                             const proto::Shard& shard) {
  const ScanOperation& scan = *request.owner->operation.scan;
  const proto::PullReply& body = reply.envelope.pull_reply();
  const proto::ScannedRows& scanned = body.scanned();
  ScannedRows& into = *scan.into;
  into.last = scanned.last();
  into.version = {.generation = body.state().generation(),
                  .version = Version(body.state().version())};
  into.samples = body.state().samples();
  into.keys.clear();
  into.rows.clear();
  into.removed.clear();
  const uint64_t shard_last = ((shard.first_element() + shard.element_count()) << 48) - 1;
  if (into.last < scan.first || into.last > shard_last) {
    return Unfit(request, "the piece does not end between its beginning and the shard's end");
  }
  if (scanned.rows() > 0) {
    CopyTo(reply.frames[0], into.keys);
    into.rows.resize(into.keys.size() * scan.width);
    Decode(request.owner->row_type, reply.frames[1].bytes(), into.rows);
  }
  if (scanned.removed() > 0) CopyTo(reply.frames.back(), into.removed);
  const auto is_within = [&](uint64_t mixed) { return mixed >= scan.first && mixed <= into.last; };
  uint64_t before = 0;
  for (size_t i = 0; i < into.keys.size(); ++i) {
    const uint64_t mixed = MixBits(into.keys[i]);
    if (!is_within(mixed) || (i > 0 && mixed <= before)) {
      return Unfit(request, absl::StrCat("key ", into.keys[i], " is out of order"));
    }
    before = mixed;
  }
  for (const uint64_t key : into.removed) {
    if (!is_within(MixBits(key))) {
      return Unfit(request, absl::StrCat("the removed key ", key, " is outside the piece"));
    }
  }
  return absl::OkStatus();
}

}  // namespace covey::client
