// SPDX-License-Identifier: Apache-2.0
#include "scheduler/port_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace covey::scheduler {

absl::Status WritePortFile(const std::string& path, uint32_t port) {
  const std::string unfinished = path + ".new";
  const std::string text = absl::StrCat(port, "\n");
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool done =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  done = done && rename(unfinished.c_str(), path.c_str()) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (done) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write the port file ", path, ": ",
                                             strerrordesc_np(error),
                                             "; check its folder and free space"));
}

}  // namespace covey::scheduler
