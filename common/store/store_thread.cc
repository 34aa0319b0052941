// SPDX-License-Identifier: Apache-2.0
#include "common/store/store_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"

namespace covey {
namespace {

constexpr int kNice = 10;

uint64_t BytesOf(const Message& message) {
  uint64_t bytes = message.envelope.store_request().read().bytes();
  if (bytes > kStoreReadMax) bytes = 0;  // refused without any work
  for (const Buffer& frame : message.frames) bytes += frame.size();
  return bytes;
}

// A reply of the sender's own process.
Message ReplyTo(const Message& request) {
  Message reply = MakeReply(request);
  reply.envelope.mutable_header()->set_node(request.envelope.to_node());
  reply.envelope.mutable_store_reply()->set_id(request.envelope.store_request().id());
  return reply;
}

absl::Status Append(const Message& message, Folder& folder) {
  const proto::StoreRequest& request = message.envelope.store_request();
  std::vector<Folder::Bytes> parts;
  for (const Buffer& frame : message.frames) parts.push_back(frame.bytes());
  return folder.Append(request.path(), request.append().offset(), parts);
}

absl::Status Publish(const Message& message, Folder& folder) {
  const proto::StoreRequest& request = message.envelope.store_request();
  if (message.frames.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot publish ", request.path(), ": ", message.frames.size(), " frames instead of one"));
  }
  return folder.Publish(request.path(), message.frames[0].bytes());
}

absl::Status Read(const proto::StoreRequest& request, Folder& folder, Message& reply) {
  absl::StatusOr<Buffer> bytes =
      folder.Read(request.path(), request.read().offset(), request.read().bytes());
  if (bytes.ok()) reply.frames.push_back(*std::move(bytes));
  return bytes.status();
}

absl::Status List(const proto::StoreRequest& request, Folder& folder, Message& reply) {
  const absl::StatusOr<std::vector<FolderEntry>> entries = folder.List(request.path());
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    proto::StoreEntry& told = *reply.envelope.mutable_store_reply()->add_entries();
    told.set_name(entry.name);
    told.set_is_folder(entry.is_folder);
    told.set_bytes(entry.bytes);
  }
  return absl::OkStatus();
}

absl::Status CarryOut(const Message& message, Folder& folder, Message& reply) {
  const proto::StoreRequest& request = message.envelope.store_request();
  switch (request.operation_case()) {
    case proto::StoreRequest::kAppend:
      return Append(message, folder);
    case proto::StoreRequest::kSync:
      return folder.Sync(request.path());
    case proto::StoreRequest::kPublish:
      return Publish(message, folder);
    case proto::StoreRequest::kRead:
      return Read(request, folder, reply);
    case proto::StoreRequest::kList:
      return List(request, folder, reply);
    case proto::StoreRequest::kRemove:
      return folder.Remove(request.path(), request.remove().first());
    case proto::StoreRequest::OPERATION_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(BodyName(message.envelope), " names no operation of a store"));
}

}  // namespace

StoreThread::StoreThread(const Options& options, std::unique_ptr<Folder> folder, Receiver receiver)
    : options_(options),
      receiver_(std::move(receiver)),
      folder_(std::move(folder)),
      thread_([this] { Run(); }) {}

StoreThread::~StoreThread() { Stop(); }

void StoreThread::Send(Message message) {
  const uint64_t bytes = BytesOf(message);
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    const bool is_idle = waiting_.empty() && bytes_ == 0;
    const bool has_room =
        bytes_ + bytes <= options_.queue_bytes_max && waiting_.size() < options_.queue_requests_max;
    if (is_idle || has_room) {
      bytes_ += bytes;
      waiting_.push_back({std::move(message), bytes});
      changed_.NotifyOne();
      return;
    }
  }
  Message reply = ReplyTo(message);
  SetStatus(absl::ResourceExhaustedError(
                absl::StrCat("the store's queue is full (", options_.queue_bytes_max, " bytes, ",
                             options_.queue_requests_max, " requests); send again after a reply")),
            reply);
  receiver_(std::move(reply));
}

void StoreThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

bool StoreThread::Take(Request& request) {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !stopped_) changed_.WaitFor(mutex_, absl::InfiniteDuration());
  if (stopped_) return false;
  request = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

void StoreThread::Release(uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ -= bytes;
}

Message StoreThread::Answer(const Message& request) {
  Message reply = ReplyTo(request);
  SetStatus(CarryOut(request, *folder_, reply), reply);
  return reply;
}

void StoreThread::Run() {
  pthread_setname_np(pthread_self(), "store");
  // Training goes first where there are fewer cores than threads.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  Request request;
  while (Take(request)) {
    Message reply = Answer(request.message);
    // First the memory, then the reply: its receiver may use what has become free.
    request.message = {};
    Release(request.bytes);
    receiver_(std::move(reply));
  }
}

}  // namespace covey
