// SPDX-License-Identifier: Apache-2.0
#include "common/store/store_requests.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

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
      return folder.Remove(request.path(), request.remove().first(),
                           {request.remove().keep().begin(), request.remove().keep().end()});
    case proto::StoreRequest::OPERATION_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(BodyName(message.envelope), " names no operation of a store"));
}

}  // namespace

Message StoreReplyTo(const Message& request) {
  Message reply = MakeReply(request);
  reply.envelope.mutable_header()->set_node(request.envelope.to_node());
  reply.envelope.mutable_store_reply()->set_id(request.envelope.store_request().id());
  return reply;
}

Message AnswerStoreRequest(const Message& request, Folder& folder) {
  Message reply = StoreReplyTo(request);
  SetStatus(CarryOut(request, folder, reply), reply);
  return reply;
}

uint64_t BytesOfStoreRequest(const Message& request) {
  uint64_t bytes = request.envelope.store_request().read().bytes();
  if (bytes > kStoreReadMax) bytes = 0;  // refused without any work
  for (const Buffer& frame : request.frames) bytes += frame.size();
  return bytes;
}

}  // namespace covey
