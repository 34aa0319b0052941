// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace covey::client {

// How many bytes of requests a client may have in flight to one data loop of a server.
//
//   no reply yet           an initial window, enough for one round trip
//   replied, not refused   the credit in the server's replies (Envelope.credit_bytes), or the
//                          client's whole budget when they carry none
//   refused                half of the former window; then one step more per window of replies, up
//                          to the credit in the replies
//
// The halving and the steps are those of TCP's congestion avoidance (RFC 5681, section 3.1), so
// clients that share a server converge to equal shares. A request alone may always go, however
// large. Actor-confined. Pure.
class ServerWindow {
 public:
  static constexpr size_t kFirstBytes = 4 << 20;
  static constexpr size_t kStepBytes = 256 << 10;
  static constexpr size_t kSmallestBytes = 64 << 10;

  explicit ServerWindow(size_t budget) : budget_(budget) {}

  bool MaySend(size_t bytes) const;
  // Returns the request's number, by which Refused tells an old refusal from a new one.
  uint64_t Send(size_t bytes);
  // The request is no longer in flight: answered, refused, lost, or sent elsewhere.
  void Gone(size_t bytes);

  // `credit` as in Envelope.credit_bytes; 0 = absent.
  void Answered(size_t bytes, size_t credit);
  // RESOURCE_EXHAUSTED to the request of that number. No effect if it was sent before the last
  // halving, because it then says nothing about the present window.
  void Refused(uint64_t number);

  size_t limit() const;
  size_t bytes_in_flight() const { return bytes_in_flight_; }
  bool idle() const { return requests_in_flight_ == 0; }

 private:
  size_t ceiling() const { return credit_ == 0 || credit_ > budget_ ? budget_ : credit_; }

  const size_t budget_;
  bool heard_ = false;
  bool refused_ = false;
  size_t credit_ = 0;
  double share_ = 0;  // valid once refused
  uint64_t sent_ = 0;
  uint64_t sent_when_halved_ = 0;
  size_t bytes_in_flight_ = 0;
  size_t requests_in_flight_ = 0;
};

}  // namespace covey::client
