// SPDX-License-Identifier: Apache-2.0
#include "common/security/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::ServiceDescriptor;
using testing::HasSubstr;

constexpr CallSubject kSubjects[] = {CallSubject::kNone, CallSubject::kOwn, CallSubject::kOther};

const ServiceDescriptor& Service() {
  return *DescriptorPool::generated_pool()->FindServiceByName(
      proto::Scheduler::service_full_name());
}

Identity Of(IdentityRole role) { return {.trust_domain = "covey", .job = "mnist", .role = role}; }

Call CallOf(const MethodRights& rights, CallSubject subject) {
  return {.service = rights.service,
          .method = rights.method,
          .trust_domain = "covey",
          .job = "mnist",
          .subject = subject};
}

Call CallOf(absl::string_view method, CallSubject subject) {
  return CallOf({.service = proto::Scheduler::service_full_name(), .method = method}, subject);
}

// The scheduler's methods that `role` may call, for its own node or any.
std::set<std::string> MethodsOf(IdentityRole role) {
  std::set<std::string> methods;
  for (const MethodRights& rights : AllRights()) {
    if (CheckRight(Of(role), CallOf(rights, CallSubject::kOwn)).ok()) {
      methods.insert(std::string(rights.method));
    }
  }
  return methods;
}

TEST(RightsTest, EveryMethodOfTheServiceHasOneRow) {
  std::multiset<std::string> rows;
  for (const MethodRights& rights : AllRights()) {
    rows.insert(absl::StrCat(rights.service, ".", rights.method));
    if (rights.service == Service().full_name()) {
      EXPECT_NE(Service().FindMethodByName(std::string(rights.method)), nullptr)
          << rights.method << " is no method; remove its row";
    }
  }
  for (int i = 0; i < Service().method_count(); ++i) {
    EXPECT_EQ(rows.count(Service().method(i)->full_name()), 1u)
        << Service().method(i)->name() << " needs its row in rights.cc";
  }
  for (const std::string& row : rows) EXPECT_EQ(rows.count(row), 1u) << row;
}

TEST(RightsTest, ARowDecides) {
  for (const MethodRights& rights : AllRights()) {
    for (const IdentityRole role : kIdentityRoles) {
      for (const CallSubject subject : kSubjects) {
        const bool expected = rights.Of(role) == Right::kYes ||
                              (rights.Of(role) == Right::kOwn && subject == CallSubject::kOwn);
        const absl::Status status = CheckRight(Of(role), CallOf(rights, subject));
        EXPECT_EQ(status.ok(), expected) << rights.method << " " << NameOf(role) << " " << status;
        EXPECT_EQ(absl::IsPermissionDenied(status), !expected);
      }
    }
  }
}

TEST(RightsTest, NobodyReachesAnotherJobOrTrustDomain) {
  for (const MethodRights& rights : AllRights()) {
    for (const IdentityRole role : kIdentityRoles) {
      for (const CallSubject subject : kSubjects) {
        Call call = CallOf(rights, subject);
        call.job = "other";
        EXPECT_FALSE(CheckRight(Of(role), call).ok()) << rights.method << NameOf(role);
        call = CallOf(rights, subject);
        call.trust_domain = "other";
        EXPECT_FALSE(CheckRight(Of(role), call).ok()) << rights.method << NameOf(role);
      }
    }
  }
}

TEST(RightsTest, AnIdentityOfEveryJobHasTheRightsOfItsRole) {
  for (const IdentityRole role : {IdentityRole::kViewer, IdentityRole::kAdmin}) {
    const Identity everywhere = {.trust_domain = "covey", .role = role};
    for (const MethodRights& rights : AllRights()) {
      Call call = CallOf(rights, CallSubject::kNone);
      const bool in_its_job = CheckRight(Of(role), call).ok();
      call.job = "other";
      EXPECT_EQ(CheckRight(everywhere, call).ok(), in_its_job) << rights.method;
    }
  }
}

TEST(RightsTest, WhatNobodyHasARightToIsRefused) {
  EXPECT_THAT(CheckRight(Of(IdentityRole::kAdmin), CallOf("Explode", CallSubject::kNone)).message(),
              HasSubstr("admin of job mnist may not call Explode: nobody has a right to it"));
  Call call = CallOf("GetStatus", CallSubject::kNone);
  call.service = "covey.proto.Other";
  EXPECT_FALSE(CheckRight(Of(IdentityRole::kAdmin), call).ok());
}

// What each role is for, apart from the table: a slip there must not pass unseen.
TEST(RightsTest, RolesAreSmall) {
  EXPECT_EQ(MethodsOf(IdentityRole::kScheduler), (std::set<std::string>{"Check", "Watch"}));
  EXPECT_EQ(MethodsOf(IdentityRole::kViewer),
            (std::set<std::string>{"Check", "GetStatus", "ListTables", "Watch", "WatchView"}));
  EXPECT_EQ(MethodsOf(IdentityRole::kServer),
            (std::set<std::string>{"Check", "Drain", "GetStatus", "Heartbeat", "Leave",
                                   "ListTables", "Register", "ReportReplicas", "ReportSnapshot",
                                   "ReportTrace", "Watch", "WatchView"}));
  EXPECT_EQ(MethodsOf(IdentityRole::kWorker),
            (std::set<std::string>{"Barrier", "Check", "CreateTable", "Drain", "GetStatus",
                                   "GetWork", "Heartbeat", "InitializeTables", "Leave",
                                   "ListTables", "Register", "ReportTrace", "Watch", "WatchView"}));
  EXPECT_EQ(
      MethodsOf(IdentityRole::kClient),
      (std::set<std::string>{"Barrier", "Check", "CreateTable", "DropTable", "GetStatus",
                             "Heartbeat", "InitializeTables", "Leave", "ListTables", "Register",
                             "ReportTrace", "SetContract", "Watch", "WatchView"}));
  EXPECT_EQ(MethodsOf(IdentityRole::kAdmin),
            (std::set<std::string>{"Check", "CreateSnapshot", "Drain", "GetStatus", "GetTrace",
                                   "ListTables", "Quarantine", "RestoreTables", "Scale",
                                   "ServerReflectionInfo", "SetContract", "StartTrace", "Watch",
                                   "WatchView"}));
}

TEST(RightsTest, ARefusalSaysWhoMay) {
  EXPECT_EQ(CheckRight(Of(IdentityRole::kViewer), CallOf("Drain", CallSubject::kNone)).message(),
            "viewer of job mnist may not call Drain: allowed are servers for their own node, "
            "workers for their own node, admins");
  EXPECT_THAT(
      CheckRight(Of(IdentityRole::kWorker), CallOf("Heartbeat", CallSubject::kOther)).message(),
      HasSubstr("only for a node of the role"));
}

}  // namespace
}  // namespace covey
