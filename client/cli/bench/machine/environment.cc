// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/machine/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/machine/proc_text.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "common/base/version.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr char kUnknown[] = "unknown";

std::string FileOrUnknown(const std::string& path) {
  const auto text = ReadTextFile(path);
  if (!text.ok() || text->empty()) return kUnknown;
  return std::string(absl::StripAsciiWhitespace(*text));
}

std::string ChoiceOf(const std::string& path) { return ReadChoice(FileOrUnknown(path)); }

// Flags that change the machine code leave these traces.
std::string CompilerAsText() {
  std::string text = absl::StrCat(
#if defined(__clang__)
      "clang ", __clang_version__
#else
      "gcc ", __VERSION__
#endif
  );
#ifdef __OPTIMIZE__
  absl::StrAppend(&text, ", optimized");
#else
  absl::StrAppend(&text, ", not optimized");
#endif
#if defined(__AVX512F__)
  absl::StrAppend(&text, ", AVX-512 everywhere");
#elif defined(__AVX2__)
  absl::StrAppend(&text, ", AVX2 everywhere");
#elif defined(__x86_64__)
  absl::StrAppend(&text, ", baseline x86-64, kernels for AVX2 and AVX-512 too");
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  absl::StrAppend(&text, ", with a sanitizer");
#endif
#ifndef NDEBUG
  absl::StrAppend(&text, ", with assertions");
#endif
  return text;
}

std::string KernelAsText() {
  utsname name;
  if (uname(&name) != 0) return kUnknown;
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

// "L1 32K, L1 32K, L2 1024K, L3 32768K" of the first core.
std::string CachesAsText() {
  std::string text;
  for (int index = 0;; ++index) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string level = FileOrUnknown(folder + "level");
    if (level == kUnknown) break;
    absl::StrAppend(&text, text.empty() ? "" : ", ", "L", level, " ",
                    FileOrUnknown(folder + "size"));
  }
  return text.empty() ? kUnknown : text;
}

std::string MemoryAsText() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  return ShowBytes(pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

std::string PeerAsText(const std::string& program, const std::string& package) {
  const auto path = FindProgram(program);
  return path.ok() ? *path : absl::StrCat("not installed: apt-get install ", package);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ReadEnvironment() {
  const auto cpuinfo = ReadTextFile("/proc/cpuinfo");
  const std::string huge_pages = "/sys/kernel/mm/transparent_hugepage/";
  return {
      {"version", kVersion},
      {"compiler", CompilerAsText()},
      {"processor", cpuinfo.ok() ? ReadCpuModel(*cpuinfo).value_or(kUnknown) : kUnknown},
      {"cores", absl::StrCat(UsableCores())},
      {"caches", CachesAsText()},
      {"memory", MemoryAsText()},
      {"kernel", KernelAsText()},
      {"huge_pages", ChoiceOf(huge_pages + "enabled")},
      {"huge_pages_of_shared_memory", ChoiceOf(huge_pages + "shmem_enabled")},
      {"congestion_control", FileOrUnknown("/proc/sys/net/ipv4/tcp_congestion_control")},
      {"governor", FileOrUnknown("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
      {"open_mpi", PeerAsText("mpirun", "openmpi-bin libopenmpi-dev")},
      {"redis", PeerAsText("redis-server", "redis-server")},
  };
}

}  // namespace covey::cli
