// SPDX-License-Identifier: Apache-2.0
#include "server/socket_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey::server {

absl::StatusOr<SocketFolder> SocketFolder::Create() {
  std::string path = "/tmp/covey-server-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return absl::InternalError(absl::StrCat("cannot make a folder for sockets as ", path, ": ",
                                            strerror(errno),
                                            "; free /tmp, or use --transport=tcp"));
  }
  return SocketFolder(std::move(path));
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, std::string())) {}

SocketFolder::~SocketFolder() {
  if (path_.empty()) return;
  if (DIR* folder = opendir(path_.c_str())) {
    while (const dirent* entry = readdir(folder)) {
      unlink(absl::StrCat(path_, "/", entry->d_name).c_str());
    }
    closedir(folder);
  }
  rmdir(path_.c_str());
}

}  // namespace covey::server
