// SPDX-License-Identifier: Apache-2.0
// A slow disk, for a program that loads this with LD_PRELOAD: while the file that COVEY_DISK_FAULT
// names says "slow", each sync of a file whose path contains COVEY_DISK_OF takes a second.

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

// The function of the C library that this one stands in for.
template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool IsStruck(int file) {
  const char* const of = std::getenv("COVEY_DISK_OF");
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = of == nullptr ? -1 : readlink(link.c_str(), path, sizeof(path) - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return std::strstr(path, of) != nullptr;
}

bool FaultIs(const char* name) {
  const char* const path = std::getenv("COVEY_DISK_FAULT");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[32] = {};
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  return size > 0 && std::strcmp(text, name) == 0;
}

void SyncSlowly(int file) {
  constexpr int kMilliseconds = 1000;
  if (IsStruck(file) && FaultIs("slow")) poll(nullptr, 0, kMilliseconds);
}

}  // namespace

extern "C" {

int fdatasync(int file) {
  static auto* const real = Real<int(int)>("fdatasync");
  SyncSlowly(file);
  return real(file);
}

int fsync(int file) {
  static auto* const real = Real<int(int)>("fsync");
  SyncSlowly(file);
  return real(file);
}

}  // extern "C"
