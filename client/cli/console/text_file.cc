// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/text_file.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

absl::Status Failure(absl::string_view doing, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path));
}

int RemoveEntry(const char* path, const struct stat*, int, FTW*) {
  remove(path);
  return 0;
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

bool WriteAll(int descriptor, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(count);
  }
  return true;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Failure("reading", path);
  std::string text;
  char bytes[4096];
  ssize_t count;
  while ((count = read(descriptor, bytes, sizeof(bytes))) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    text.append(bytes, count);
  }
  const absl::Status status = count < 0 ? Failure("reading", path) : absl::OkStatus();
  close(descriptor);
  if (!status.ok()) return status;
  return text;
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  const std::string fresh = absl::StrCat(path, ".", getpid(), ".new");
  const int descriptor = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return Failure("writing", path);
  const bool written = WriteAll(descriptor, text);
  if ((close(descriptor) == 0) && written && rename(fresh.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = Failure("writing", path);
  unlink(fresh.c_str());
  return status;
}

absl::Status CheckWritable(const std::string& path) {
  const std::string folder = FolderOf(path);
  if (access(folder.c_str(), W_OK) != 0) return Failure("writing", path);
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a file"));
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return Failure("making", folder);
    if (end == std::string::npos) break;
  }
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " is not a folder"));
}

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make() {
  std::string path = "/tmp/covey-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Failure("making a folder in", "/tmp");
  return absl::WrapUnique(new TemporaryFolder(path));
}

void RemoveFolder(const std::string& path) {
  nftw(path.c_str(), RemoveEntry, /*nopenfd=*/16, FTW_DEPTH | FTW_PHYS);
}

TemporaryFolder::~TemporaryFolder() { RemoveFolder(path_); }

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Open(const std::string& path, Existing existing) {
  const int how = existing == Existing::kKept ? O_APPEND : O_TRUNC;
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | how | O_CLOEXEC, 0666);
  if (descriptor < 0) return Failure("writing", path);
  return absl::WrapUnique(new LogFile(descriptor));
}

LogFile::~LogFile() { close(descriptor_); }

void LogFile::Append(absl::string_view line) { WriteAll(descriptor_, absl::StrCat(line, "\n")); }

}  // namespace covey::cli
