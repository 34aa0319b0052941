// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace covey::client {

// Where the time of a training step goes: mean seconds per step. A value.
struct StepTimes {
  // The program's own time, without input.
  double computation = 0;
  // Reading and preparing samples; 0 also when the program does not tell.
  double input = 0;
  // Waiting for values: for the members of the worker's group, and for servers.
  double group = 0;
  double servers = 0;

  double total() const { return computation + input + group + servers; }
  // Adds `weight` times the other's.
  void Add(const StepTimes& other, double weight) {
    computation += weight * other.computation;
    input += weight * other.input;
    group += weight * other.group;
    servers += weight * other.servers;
  }
};

// The largest part: "computation", "input", "group" or "servers". Pure.
absl::string_view BottleneckOf(const StepTimes& times);

// One line for humans, which begins with kStepSentence: "a step takes 1.21 ms: computation 58 %,
// input 5 %, waiting for the group 25 %, waiting for servers 12 %; bottleneck: computation". Adds
// what helps against a bottleneck other than computation. Precondition: a total above 0. Pure.
inline constexpr char kStepSentence[] = "a step takes ";
std::string DescribeStep(const StepTimes& times);

}  // namespace covey::client
