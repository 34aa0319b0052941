// SPDX-License-Identifier: Apache-2.0
// A slow disk, for a program that loads this with LD_PRELOAD: while the file exists that
// COVEY_DISK_IS_SLOW_WHILE names, each sync of a file whose path contains COVEY_DISK_OF takes a
// second more.

#include <dlfcn.h>
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

bool IsSlow() {
  const char* const path = std::getenv("COVEY_DISK_IS_SLOW_WHILE");
  return path != nullptr && access(path, F_OK) == 0;
}

void SyncSlowly(int file) {
  constexpr int kMilliseconds = 1000;
  if (IsStruck(file) && IsSlow()) poll(nullptr, 0, kMilliseconds);
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
