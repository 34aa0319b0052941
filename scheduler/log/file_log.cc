// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/file_log.h"

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

// The disk's reply to the scheduler's loop.
Message DurableReply(const Message& append) {
  Message reply = MakeReply(append);
  reply.envelope.mutable_header()->set_node(kSchedulerNode.value());
  reply.envelope.mutable_disk_durable()->set_index(append.envelope.disk_append().index());
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLog>> FileLog::Open(std::unique_ptr<LogFolder> folder,
                                                       uint64_t file_bytes_max) {
  auto log = std::unique_ptr<FileLog>(new FileLog(std::move(folder), file_bytes_max));
  COVEY_RETURN_IF_ERROR(log->Recover());
  return log;
}

absl::Status FileLog::Recover() {
  COVEY_ASSIGN_OR_RETURN(file_, folder_->OpenLog());
  COVEY_ASSIGN_OR_RETURN(const std::string bytes, file_->Read());
  absl::StatusOr<RecoveredLog> log =
      RecoverLog({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!log.ok()) {
    return Annotate(absl::StrCat("the scheduler log ", folder_->path()), log.status());
  }
  recovered_ = std::move(log->newest);
  size_ = log->intact_bytes;
  const bool is_trusted = Planted(PlantedBug::kTrustLogAsRead) && size_ == bytes.size();
  if (recovered_ && !is_trusted) return Replace(EncodeRecord(*recovered_));
  if (!recovered_) COVEY_RETURN_IF_ERROR(file_->Clear());
  COVEY_RETURN_IF_ERROR(file_->Sync());
  return folder_->Sync();
}

void FileLog::Send(Message message) {
  if (!message.envelope.has_disk_append()) return;
  const absl::Status status = Write(message.envelope.disk_append().record());
  has_failed_ = !status.ok() && !Planted(PlantedBug::kAppendAfterFailure);
  Message reply = DurableReply(message);
  SetStatus(status, reply);
  receiver_(std::move(reply));
}

absl::Status FileLog::Write(const std::string& record) {
  const bool is_full = size_ > 0 && size_ + record.size() > file_bytes_max_;
  return is_full || has_failed_ ? Replace(record) : Append(record);
}

absl::Status FileLog::Append(const std::string& record) {
  COVEY_RETURN_IF_ERROR(file_->Append(record));
  if (!Planted(PlantedBug::kLogNotSynced)) COVEY_RETURN_IF_ERROR(file_->Sync());
  size_ += record.size();
  return absl::OkStatus();
}

absl::Status FileLog::Replace(const std::string& record) {
  const absl::Status status = PutSuccessor(record);
  if (!status.ok()) {
    folder_->RemoveSuccessor();
    return status;
  }
  size_ = record.size();
  return Planted(PlantedBug::kLogFolderNotSynced) ? absl::OkStatus() : folder_->Sync();
}

absl::Status FileLog::PutSuccessor(const std::string& record) {
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> successor, folder_->CreateSuccessor());
  COVEY_RETURN_IF_ERROR(successor->Append(record));
  COVEY_RETURN_IF_ERROR(successor->Sync());
  COVEY_RETURN_IF_ERROR(folder_->RenameSuccessor());
  file_ = std::move(successor);
  return absl::OkStatus();
}

void NullLog::Send(Message message) {
  if (message.envelope.has_disk_append()) receiver_(DurableReply(message));
}

}  // namespace covey::scheduler
