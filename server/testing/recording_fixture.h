// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "common/net/message.h"
#include "common/recording/recording.h"
#include "common/store/testing/memory_folder.h"
#include "server/recording/recorder.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {

// A ShardDriver that records, with the store of its recording in memory.
class RecordingDriver {
 public:
  explicit RecordingDriver(const TestJob& job, const Recorder::Options& options = {})
      : driver_(job, {.recording = options}) {}

  ShardDriver& driver() { return driver_; }
  MemoryFolder& folder() { return folder_; }

  // The replies to a request. What is to be stored is stored meanwhile.
  std::vector<Message> Deliver(const Message& message) { return Stored(driver_.Deliver(message)); }
  // Lets the recorder send what it has.
  void Flush() {
    driver_.Pass(absl::Seconds(1));
    Stored(driver_.Wake());
  }
  Recording End() {
    Outbox outbox;
    driver_.actor().EndRecording(outbox);
    Stored(outbox.TakeMessages());
    return Recording::Open(folder_).value();
  }
  // Without replies from now on: a disk that hangs.
  void Hang() { hangs_ = true; }
  // Requests to the store.
  int requests() const { return requests_; }

 private:
  std::vector<Message> Stored(std::vector<Message> sent) {
    std::vector<Message> others;
    for (Message& message : sent) {
      if (message.to().loop != kRecordingLoop) {
        others.push_back(std::move(message));
        continue;
      }
      ++requests_;
      if (!hangs_) {
        driver_.actor().Receive(driver_.now(), ReplyTo(message), ignored_);
      }
    }
    return others;
  }

  Message ReplyTo(const Message& message) {
    const proto::StoreRequest& request = message.envelope.store_request();
    std::vector<Folder::Bytes> parts;
    for (const Buffer& frame : message.frames) parts.push_back(frame.bytes());
    const absl::Status status =
        request.has_append() ? folder_.Append(request.path(), request.append().offset(), parts)
                             : folder_.Sync(request.path());
    Message reply;
    reply.set_to({kTestServer, 1});
    reply.envelope.mutable_header()->set_node(kTestServer.value());
    reply.envelope.set_from_loop(kRecordingLoop);
    reply.envelope.mutable_store_reply()->set_id(request.id());
    SetStatus(status, reply);
    return reply;
  }

  ShardDriver driver_;
  MemoryFolder folder_;
  Outbox ignored_;
  bool hangs_ = false;
  int requests_ = 0;
};

}  // namespace covey::server
