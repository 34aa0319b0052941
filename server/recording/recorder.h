// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/recording/recording_entry.h"
#include "common/runtime/actor.h"
#include "proto/process.pb.h"
#include "server/replication/record_observer.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// The process's store of recordings, beside kStoreLoop.
inline constexpr uint32_t kRecordingLoop = 0xfffffffc;
static_assert(kRecordingLoop < kStoreLoop);

// Records what the heads of one loop apply: the order of pushes, and their gradients.
//
//   records ─▶ a block, after 200 ms or 64 KiB ─▶ store, a bounded number of bytes in flight
//
// Training never waits for it. Where the store fails, or is slower than the pushes, the recording
// ends, a line of the log says why, and what has been stored stays readable
// (common/recording/recording_file.h).
//
// Actor-confined. Deterministic. Memory: the gradients in flight, at most
// Options::bytes_in_flight_max.
class Recorder final : public RecordObserver {
 public:
  struct Options {
    bool gradients = true;
    uint64_t bytes_in_flight_max = 256 << 20;
  };

  explicit Recorder(const Options& options) : options_(options) {}

  // The job, and the loop's own address, for its files. Before the first record.
  void SetSelf(uint64_t job, const Address& self);

  bool keeps_gradients() const override { return options_.gradients && is_recording(); }
  void OnAppended(absl::Time now, const AppendedRecord& appended) override;
  // This loop is no more the shard's head, or ends: notes the digest of what it leaves.
  void Close(ShardId id, const ShardContent& content);

  // Sends what is due. To be called after each call of the loop.
  void Send(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return is_recording() ? send_at_ : absl::InfiniteFuture(); }
  // Sends what there is, and ends the recording in order.
  void End(Outbox& outbox);
  // Precondition: a StoreReply of kRecordingLoop in this process.
  void OnStoreReply(const Message& reply);

  bool is_recording() const { return state_ == State::kRecording; }

 private:
  enum class State { kRecording, kEnded };
  // A shard of which this loop is the head.
  struct Stream {
    uint64_t number = 0;
    uint64_t generation = 0;
    Epoch head_since;
    bool has_digest = true;  // of the newest record
  };

  Stream& StreamOf(const AppendedRecord& appended);
  // Adds the array to the payload of its entry, which is encoded afterwards.
  void Keep(const EncodedGradient& array, AppliedRecord& entry);
  void Note(Stream& stream, uint64_t digest);
  // The entries and gradients so far become a block.
  void EndBlock();
  void SendBlock(std::vector<Buffer> block, Outbox& outbox);
  void Append(std::vector<Buffer> frames, Outbox& outbox);
  void Sync(Outbox& outbox);
  void Request(proto::StoreRequest request, std::vector<Buffer> frames, Outbox& outbox);
  // Ends the recording before its time.
  void GiveUp(const absl::Status& why);
  std::string file_name() const;

  // Constant after construction.
  const Options options_;

  // Owned by the actor's thread.
  uint64_t job_ = 0;
  Address self_;
  State state_ = State::kRecording;
  absl::btree_map<ShardId, Stream> streams_;
  uint64_t next_stream_ = 0;
  // The newest block: its entries, and their gradients.
  std::vector<uint8_t> entries_;
  std::vector<Buffer> gradients_;
  uint64_t gradient_bytes_ = 0;
  std::vector<std::vector<Buffer>> blocks_;  // those before it that are not sent yet
  absl::Time send_at_ = absl::InfiniteFuture();
  // The file that is being written: its number, and its size with what is in flight.
  uint32_t file_ = 0;
  uint64_t offset_ = 0;
  std::map<uint64_t, uint64_t> in_flight_;  // bytes by request
  uint64_t bytes_in_flight_ = 0;
  uint64_t next_request_ = 1;
};

}  // namespace covey::server
