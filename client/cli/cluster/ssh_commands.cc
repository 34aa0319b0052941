// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/ssh_commands.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/cluster/shell_words.h"

namespace covey::cli {
namespace {

// The longest path of a Unix domain socket, less what ssh adds while it makes one, and the number
// of a host.
constexpr size_t kSocketsBytesMax = 107 - 17 - 8;
// How long a connection stays when this process was killed.
constexpr char kPersist[] = "ControlPersist=30";

}  // namespace

SshCommands::SshCommands(const ClusterFile& file, std::string sockets)
    : file_(file), sockets_(sockets.size() <= kSocketsBytesMax ? std::move(sockets) : "") {}

void SshCommands::AddIdentity(std::vector<std::string>& words) const {
  if (!file_.ssh.identity.empty()) {
    words.push_back("-i");
    words.push_back(file_.ssh.identity);
  }
  for (const std::string& option : file_.ssh.options) {
    words.push_back("-o");
    words.push_back(option);
  }
}

void SshCommands::AddOptions(size_t host, Sharing sharing, std::vector<std::string>& words) const {
  std::vector<std::string> options = {
      "BatchMode=yes",
      absl::StrCat("ConnectTimeout=", absl::ToInt64Seconds(file_.ssh.connect_deadline)),
      "ServerAliveInterval=5", "ServerAliveCountMax=3"};
  if (sharing == Sharing::kIsShared && !sockets_.empty()) {
    options.insert(options.end(), {"ControlMaster=auto", kPersist,
                                   absl::StrCat("ControlPath=", sockets_, "/", host)});
  }
  for (std::string& option : options) {
    words.push_back("-o");
    words.push_back(std::move(option));
  }
  AddIdentity(words);
  const ClusterFile::Host& of = file_.hosts[host];
  if (!of.user.empty()) {
    words.push_back("-o");
    words.push_back(absl::StrCat("User=", of.user));
  }
  if (of.port != 0) {
    words.push_back("-o");
    words.push_back(absl::StrCat("Port=", of.port));
  }
}

std::vector<std::string> SshCommands::Run(size_t host, absl::string_view script) const {
  std::vector<std::string> words = {"ssh", "-T"};
  AddOptions(host, Sharing::kIsShared, words);
  words.insert(words.end(),
               {"--", file_.hosts[host].name, absl::StrCat("exec /bin/sh -c ", ShellWord(script))});
  return words;
}

std::vector<std::string> SshCommands::Copy(size_t host, const std::vector<std::string>& paths,
                                           const std::string& folder) const {
  std::vector<std::string> words = {"scp", "-q", "-r", "-p"};
  AddOptions(host, Sharing::kIsShared, words);
  words.push_back("--");
  // scp takes what has a colon before a slash for a host.
  for (const std::string& path : paths) {
    words.push_back(absl::StartsWith(path, "/") ? path : absl::StrCat("./", path));
  }
  const std::string& name = file_.hosts[host].name;
  const bool is_ipv6 = absl::StrContains(name, ':');
  words.push_back(absl::StrCat(is_ipv6 ? "[" : "", name, is_ipv6 ? "]" : "", ":", folder, "/"));
  return words;
}

std::vector<std::string> SshCommands::Disconnect(size_t host) const {
  if (sockets_.empty()) return {};
  return {"ssh", "-q",
          "-O",  "exit",
          "-o",  absl::StrCat("ControlPath=", sockets_, "/", host),
          "--",  file_.hosts[host].name};
}

std::vector<std::string> SshCommands::Probe(size_t host) const {
  std::vector<std::string> words = {"ssh"};
  AddOptions(host, Sharing::kIsNot, words);
  words.insert(words.end(), {"--", file_.hosts[host].name, "true"});
  return words;
}

}  // namespace covey::cli
