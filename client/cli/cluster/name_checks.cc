// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/name_checks.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace covey::cli {
namespace {

constexpr uint32_t kPortMax = 65535;

// Flags of schedulers and servers that follow from other parts of the file.
constexpr std::pair<absl::string_view, absl::string_view> kOwnFlags[] = {
    {"--job", "job"},
    {"--tls", "tls"},
    {"--insecure", "insecure"},
    {"--scheduler", "scheduler"},
    {"--host", "hosts"},
    {"--port", "scheduler: port"},
    {"--data-host", "hosts"},
    {"--rank", "servers"},
    {"--labels", "hosts: labels"},
    {"--servers", "servers"},
    {"--validate-only", ""},
    {"--help", ""},
    {"--version", ""},
    {"--print-config", ""}};

absl::Status Wrong(const std::string& at, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(at, ": ", what));
}

bool HasOnly(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char letter) {
    return absl::ascii_isalnum(letter) || absl::StrContains(others, letter);
  });
}

}  // namespace

bool IsVariable(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) && HasOnly(name, "_");
}

bool IsAddress(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

absl::Status CheckName(const std::string& at, absl::string_view what, absl::string_view name,
                       absl::string_view others) {
  if (name.empty() || absl::StartsWith(name, "-") || !HasOnly(name, others)) {
    return Wrong(at, absl::StrCat("\"", name, "\" is no ", what, "; write letters, digits and ",
                                  others, ", the first no -, and a user of ssh as `user`"));
  }
  return absl::OkStatus();
}

absl::Status CheckFolder(const std::string& at, absl::string_view folder) {
  const std::vector<absl::string_view> parts = absl::StrSplit(folder, '/');
  const bool goes_up = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (folder.empty() || folder == "/" || absl::StartsWith(folder, "-") || goes_up ||
      !HasOnly(folder, "._-/")) {
    return Wrong(at, absl::StrCat("folder \"", folder,
                                  "\" is refused; give one of letters, digits and ._-/ without .., "
                                  "as in /srv/covey, or covey in the home of the user"));
  }
  return absl::OkStatus();
}

absl::Status CheckPort(const std::string& at, uint32_t port) {
  if (port >= 1 && port <= kPortMax) return absl::OkStatus();
  return Wrong(at, absl::StrCat("port ", port, " is out of range; give 1 to ", kPortMax));
}

absl::Status CheckFlags(const std::string& at, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    const std::string name = flag.substr(0, flag.find('='));
    if (!absl::StartsWith(flag, "--") || flag == "--") {
      return Wrong(at,
                   absl::StrCat("flag \"", flag, "\" does not begin with --; write --NAME=VALUE"));
    }
    for (const auto& [own, key] : kOwnFlags) {
      if (name != own) continue;
      return Wrong(at, key.empty() ? absl::StrCat(name, " starts nothing; leave it out")
                                   : absl::StrCat(name, " follows from `", key,
                                                  "` of this file; leave it out"));
    }
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
