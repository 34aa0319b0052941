// SPDX-License-Identifier: Apache-2.0
#include "common/security/rights.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace covey {
namespace {

constexpr absl::string_view kScheduler = "covey.proto.Scheduler";
constexpr absl::string_view kHealth = "grpc.health.v1.Health";
constexpr absl::string_view kReflection = "grpc.reflection.v1alpha.ServerReflection";

constexpr Right kNo = Right::kNo;
constexpr Right kOwn = Right::kOwn;
constexpr Right kYes = Right::kYes;

constexpr MethodRights kRights[] = {
    //                                  scheduler server worker client viewer admin
    {kScheduler, "Register", /*-------------*/ kNo, kOwn, kOwn, kOwn, kNo, kNo},
    {kScheduler, "Heartbeat", /*------------*/ kNo, kOwn, kOwn, kOwn, kNo, kNo},
    {kScheduler, "WatchView", /*------------*/ kNo, kOwn, kOwn, kOwn, kYes, kYes},
    {kScheduler, "CreateTable", /*----------*/ kNo, kNo, kOwn, kOwn, kNo, kNo},
    {kScheduler, "InitializeTables", /*-----*/ kNo, kNo, kOwn, kOwn, kNo, kNo},
    {kScheduler, "DropTable", /*------------*/ kNo, kNo, kNo, kOwn, kNo, kNo},
    {kScheduler, "SetContract", /*----------*/ kNo, kNo, kNo, kOwn, kNo, kYes},
    {kScheduler, "Drain", /*----------------*/ kNo, kOwn, kOwn, kNo, kNo, kYes},
    {kScheduler, "Scale", /*----------------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kScheduler, "Quarantine", /*-----------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kScheduler, "ReportReplicas", /*-------*/ kNo, kOwn, kNo, kNo, kNo, kNo},
    {kScheduler, "ReportSnapshot", /*-------*/ kNo, kOwn, kNo, kNo, kNo, kNo},
    {kScheduler, "CreateSnapshot", /*-------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kScheduler, "RestoreTables", /*--------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kScheduler, "GetWork", /*--------------*/ kNo, kNo, kOwn, kNo, kNo, kNo},
    {kScheduler, "ListTables", /*-----------*/ kNo, kYes, kYes, kYes, kYes, kYes},
    {kScheduler, "Barrier", /*--------------*/ kNo, kNo, kOwn, kOwn, kNo, kNo},
    {kScheduler, "Leave", /*----------------*/ kNo, kOwn, kOwn, kOwn, kNo, kNo},
    {kScheduler, "GetStatus", /*------------*/ kNo, kYes, kYes, kYes, kYes, kYes},
    {kScheduler, "StartTrace", /*-----------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kScheduler, "ReportTrace", /*----------*/ kNo, kOwn, kOwn, kOwn, kNo, kNo},
    {kScheduler, "GetTrace", /*-------------*/ kNo, kNo, kNo, kNo, kNo, kYes},
    {kHealth, "Check", /*-------------------*/ kYes, kYes, kYes, kYes, kYes, kYes},
    {kHealth, "Watch", /*-------------------*/ kYes, kYes, kYes, kYes, kYes, kYes},
    {kReflection, "ServerReflectionInfo", /**/ kNo, kNo, kNo, kNo, kNo, kYes},
};

const MethodRights* Find(const Call& call) {
  const auto row =
      std::find_if(std::begin(kRights), std::end(kRights), [&call](const MethodRights& rights) {
        return rights.service == call.service && rights.method == call.method;
      });
  return row == std::end(kRights) ? nullptr : row;
}

// "servers for their own node, admins": those who may, for the one who may not.
std::string Allowed(const MethodRights& rights) {
  std::vector<std::string> allowed;
  for (const IdentityRole role : kIdentityRoles) {
    if (rights.Of(role) == Right::kNo) continue;
    allowed.push_back(absl::StrCat(NameOf(role), "s",
                                   rights.Of(role) == Right::kOwn ? " for their own node" : ""));
  }
  return absl::StrJoin(allowed, ", ");
}

absl::Status Refused(const Identity& caller, const Call& call, absl::string_view why) {
  return absl::PermissionDeniedError(
      absl::StrCat(Describe(caller), " may not call ", call.method, ": ", why));
}

}  // namespace

Right MethodRights::Of(IdentityRole role) const {
  switch (role) {
    case IdentityRole::kScheduler:
      return scheduler;
    case IdentityRole::kServer:
      return server;
    case IdentityRole::kWorker:
      return worker;
    case IdentityRole::kClient:
      return client;
    case IdentityRole::kViewer:
      return viewer;
    case IdentityRole::kAdmin:
      return admin;
  }
  COVEY_CHECK(false);
}

std::span<const MethodRights> AllRights() { return kRights; }

absl::Status CheckRight(const Identity& caller, const Call& call) {
  const MethodRights* const rights = Find(call);
  if (rights == nullptr) return Refused(caller, call, "nobody has a right to it");
  if (caller.trust_domain != call.trust_domain) {
    return Refused(caller, call,
                   absl::StrCat("this is the trust domain ", call.trust_domain, ", not ",
                                caller.trust_domain, "; use a certificate of this one"));
  }
  if (caller.job.has_value() && *caller.job != call.job) {
    return Refused(
        caller, call,
        absl::StrCat("this is job ", call.job, "; use a certificate of it, or call its scheduler"));
  }
  switch (rights->Of(caller.role)) {
    case Right::kYes:
      return absl::OkStatus();
    case Right::kOwn:
      if (call.subject == CallSubject::kOwn) return absl::OkStatus();
      return Refused(caller, call,
                     "only for a node of the role, and of the rank where there is one, of its own "
                     "certificate");
    case Right::kNo:
      return Refused(caller, call, absl::StrCat("allowed are ", Allowed(*rights)));
  }
  COVEY_CHECK(false);
}

}  // namespace covey
