// SPDX-License-Identifier: Apache-2.0
#include "server/recording/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/net/frame_checksum.h"
#include "common/recording/recording_file.h"
#include "common/tensor/wire_format_proto.h"
#include "server/replication/push_history.h"

namespace covey::server {
namespace {

// A block is sent when it is as large, or when its first entry is as old: little is lost when the
// process dies, and a request to the store serves many pushes.
constexpr uint64_t kBlockBytes = 64 << 10;
constexpr absl::Duration kSendAfter = absl::Milliseconds(200);
// Records between two digests of a shard: how closely a replay names a difference. A digest reads
// all bytes of the shard.
constexpr uint64_t kRecordsPerDigest = 64;

AppliedPush ToEntry(const RecordedPush& push) {
  return {.producer_kind = push.key.producer.kind == Producer::Kind::kGroup
                               ? AppliedPush::Producer::kGroup
                               : AppliedPush::Producer::kClient,
          .producer = push.key.producer.id,
          .incarnation = push.key.incarnation,
          .sequence = push.key.sequence,
          .group = push.group.value(),
          .step = push.step.value(),
          .samples = push.samples,
          .base_version = push.base_version.value(),
          .discarded = push.discarded,
          .norm = push.norm,
          .is_beyond_gate = push.is_beyond_gate};
}

AppliedRecord ToEntry(uint64_t stream, const ShardRecord& record) {
  AppliedRecord entry;
  entry.stream = stream;
  entry.is_update = record.version != Version();
  entry.is_initial_values = record.initial_values;
  if (record.initial_state) {
    entry.initial_state = {.updates = record.initial_state->updates,
                           .samples = record.initial_state->samples};
  }
  for (const RecordedPush& push : record.pushes) entry.pushes.push_back(ToEntry(push));
  entry.cut = record.cut;
  entry.functions = record.functions;
  if (entry.is_update) {
    entry.rate_factor = record.adjustment.rate_factor;
    entry.momentum = record.adjustment.momentum;
    entry.asynchrony = {.staleness = record.asynchrony.staleness,
                        .pushes = record.asynchrony.pushes,
                        .updates_above_target = record.asynchrony.updates_above_target};
  }
  return entry;
}

// Recordings hold elements, whatever a push was.
EncodedGradient ElementsOf(const AppendedRecord& appended) {
  if (appended.record.gradient.terms == 0) return appended.record.gradient;
  const std::span<const float> elements = appended.gradient.elements;
  return {.frame = Buffer::CopyOf(
              {reinterpret_cast<const uint8_t*>(elements.data()), elements.size_bytes()})};
}

// Of the content, which has `version` with the record. Initial values replace what was there, so it
// is of no interest then.
uint64_t VersionBefore(const ShardRecord& record, uint64_t version) {
  if (record.initial_values) return 0;
  return record.version == Version() ? version : version - 1;
}

}  // namespace

void Recorder::SetSelf(uint64_t job, const Address& self) {
  job_ = job;
  self_ = self;
}

Recorder::Stream& Recorder::StreamOf(const AppendedRecord& appended) {
  Stream& stream = streams_[appended.id];
  if (stream.generation == appended.shard.generation() &&
      stream.head_since == appended.head_since) {
    return stream;
  }
  stream = {.number = next_stream_++,
            .generation = appended.shard.generation(),
            .head_since = appended.head_since};
  proto::Table table;
  table.set_id(appended.table.id());
  *table.mutable_spec() = appended.table.spec();
  *table.add_shards() = appended.shard;
  const ShardRecord& record = appended.record;
  const uint64_t version = appended.content.version().value();
  EncodeEntry(ShardBegin{.stream = stream.number,
                         .chain_epoch = appended.head_since.value(),
                         .index = record.index - 1,
                         .version = VersionBefore(record, version),
                         .table = table.SerializeAsString()},
              entries_);
  return stream;
}

void Recorder::OnAppended(absl::Time now, const AppendedRecord& appended) {
  if (!is_recording()) return;
  if (entries_.empty()) send_at_ = now + kSendAfter;
  Stream& stream = StreamOf(appended);
  stream.has_digest = false;
  const ShardRecord& record = appended.record;
  AppliedRecord entry = ToEntry(stream.number, record);
  const bool has_gradient = (entry.is_update && entry.functions.empty()) || entry.is_initial_values;
  if (options_.gradients && has_gradient) {
    Keep(ElementsOf(appended), entry);
    if (record.initial_state) {
      for (const EncodedGradient& slot : record.initial_state->slots) Keep(slot, entry);
    }
  }
  EncodeEntry(entry, entries_);
  if (entries_.size() > kRecordingEntriesBytesMax) {
    return GiveUp(absl::ResourceExhaustedError(absl::StrCat(
        "a record of ", record.pushes.size(), " pushes is too large; use a smaller buffer")));
  }
  if (record.digest) {
    Note(stream, *record.digest);
  } else if (record.index % kRecordsPerDigest == 0) {
    Note(stream, appended.content.Digest());
  }
  if (entries_.size() + gradient_bytes_ >= kBlockBytes) EndBlock();
}

void Recorder::Keep(const EncodedGradient& array, AppliedRecord& entry) {
  const uint32_t checksum = array.checksum ? *array.checksum : FrameChecksum(array.frame);
  if (entry.payload) {
    entry.payload->checksum = JoinCrc32c(entry.payload->checksum, checksum, array.frame.size());
    entry.payload->bytes += array.frame.size();
  } else {
    entry.payload = {.format = WireFormatFromProto(array.format).value(),
                     .bytes = array.frame.size(),
                     .checksum = checksum};
  }
  gradient_bytes_ += array.frame.size();
  gradients_.push_back(array.frame);
}

void Recorder::Note(Stream& stream, uint64_t digest) {
  stream.has_digest = true;
  EncodeEntry(ContentDigest{.stream = stream.number, .digest = digest}, entries_);
}

void Recorder::Close(ShardId id, const ShardContent& content) {
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return;
  if (is_recording() && !stream->second.has_digest) {
    Note(stream->second, content.Digest());
    EndBlock();
  }
  streams_.erase(stream);
}

void Recorder::Send(absl::Time now, Outbox& outbox) {
  if (now >= send_at_) EndBlock();
  for (std::vector<Buffer>& block : std::exchange(blocks_, {})) {
    if (is_recording()) SendBlock(std::move(block), outbox);
  }
}

void Recorder::EndBlock() {
  send_at_ = absl::InfiniteFuture();
  if (entries_.empty()) return;
  std::vector<Buffer>& block = blocks_.emplace_back();
  block.push_back(EncodeBlock(entries_));
  for (Buffer& gradient : gradients_) block.push_back(std::move(gradient));
  entries_.clear();
  gradients_.clear();
  gradient_bytes_ = 0;
}

void Recorder::SendBlock(std::vector<Buffer> block, Outbox& outbox) {
  if (offset_ >= kRecordingFileBytes) {
    Sync(outbox);
    ++file_;
    offset_ = 0;
  }
  if (offset_ == 0) {
    const auto header = EncodeRecordingHeader(
        {.job = job_, .file = {.node = self_.node.value(), .loop = self_.loop, .number = file_}});
    block.insert(block.begin(), Buffer::CopyOf(header));
  }
  Append(std::move(block), outbox);
}

void Recorder::Append(std::vector<Buffer> frames, Outbox& outbox) {
  uint64_t bytes = 0;
  for (const Buffer& frame : frames) bytes += frame.size();
  if (bytes_in_flight_ > 0 && bytes_in_flight_ + bytes > options_.bytes_in_flight_max) {
    return GiveUp(absl::ResourceExhaustedError(
        absl::StrCat("the disk is slower than the pushes: ", bytes_in_flight_,
                     " bytes wait for it; record without gradients, or on a faster disk")));
  }
  proto::StoreRequest append;
  append.set_path(file_name());
  append.mutable_append()->set_offset(offset_);
  in_flight_.emplace(next_request_, bytes);
  bytes_in_flight_ += bytes;
  offset_ += bytes;
  Request(std::move(append), std::move(frames), outbox);
}

void Recorder::Sync(Outbox& outbox) {
  proto::StoreRequest sync;
  sync.set_path(file_name());
  sync.mutable_sync();
  Request(std::move(sync), {}, outbox);
}

void Recorder::Request(proto::StoreRequest request, std::vector<Buffer> frames, Outbox& outbox) {
  Message message;
  message.set_to({self_.node, kRecordingLoop});
  request.set_id(next_request_++);
  *message.envelope.mutable_store_request() = std::move(request);
  for (Buffer& frame : frames) message.frames.push_back(std::move(frame));
  outbox.Send(std::move(message));
}

void Recorder::End(Outbox& outbox) {
  if (!is_recording()) return;
  if (next_stream_ > 0) {
    EncodeEntry(RecordingEnd{}, entries_);
    EndBlock();
    Send(absl::InfinitePast(), outbox);
    Sync(outbox);
  }
  state_ = State::kEnded;
}

void Recorder::OnStoreReply(const Message& reply) {
  const auto append = in_flight_.find(reply.envelope.store_reply().id());
  if (append != in_flight_.end()) {
    bytes_in_flight_ -= append->second;
    in_flight_.erase(append);
  }
  if (const absl::Status status = StatusOf(reply); !status.ok()) GiveUp(status);
}

void Recorder::GiveUp(const absl::Status& why) {
  if (!is_recording()) return;
  state_ = State::kEnded;
  entries_.clear();
  gradients_.clear();
  blocks_.clear();
  streams_.clear();
  LogWarning("recording_ended", {{"file", file_name()}, {"reason", why.message()}});
}

std::string Recorder::file_name() const {
  return RecordingFileName({.node = self_.node.value(), .loop = self_.loop, .number = file_});
}

}  // namespace covey::server
