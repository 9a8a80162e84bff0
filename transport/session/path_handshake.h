// Agrees with the peer when to use and when to drop the fast path, by frames
// over the lifeline. Does no I/O.
//
// Each attempt has a number, the epoch; the first epoch is the hello's.
//
//   state        event            actions               next
//   kTrying      LocalReady       send ready            kReadyHere
//                PeerReady        -                     kReadyThere
//                NothingToTry     report                kSettled
//   kReadyThere  LocalReady       send ready, use       kInUse
//   kReadyHere   PeerReady        use                   kInUse
//   these four   LocalLost        drop, send lost       kLostHere
//                PeerLost         drop, send lost,      kSettled
//                                 report
//   kLostHere    PeerLost         report                kSettled
//                NothingToTry     report                kSettled
//   kSettled     Retry            send wanted           kTrying, next epoch
//                PeerWanted       listen                kTrying, next epoch
//
// "These four" are kTrying, kReadyThere, kReadyHere and kInUse. Events of an
// earlier epoch and unlisted events change nothing, because both sides may lose
// a path at the same time. In kSettled, both sides have agreed to use only the
// lifeline.

#ifndef PENSTOCK_TRANSPORT_SESSION_PATH_HANDSHAKE_H_
#define PENSTOCK_TRANSPORT_SESSION_PATH_HANDSHAKE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace session {

class PathHandshake {
 public:
  enum class State {
    kTrying,
    kReadyHere,
    kReadyThere,
    kInUse,
    kLostHere,
    kSettled
  };

  // The actions to take, in this order.
  struct Actions {
    bool drop = false;  // drop the path or the attempt
    bool send_lost = false;
    bool send_ready = false;
    bool use = false;     // use the path, and report it
    bool report = false;  // only the lifeline is left
    bool send_wanted = false;
    bool listen = false;
  };

  Actions OnLocalReady();
  Actions OnLocalLost();
  Actions OnNothingToTry();
  Actions Retry();

  // Handle the peer's frames. Return INVALID_ARGUMENT for an impossible epoch.
  absl::Status OnPeerReady(uint32_t epoch, Actions* actions);
  absl::Status OnPeerLost(uint32_t epoch, Actions* actions);
  absl::Status OnPeerWanted(uint32_t epoch, Actions* actions);

  State state() const { return state_; }
  uint32_t epoch() const { return epoch_; }
  // Returns true if the present epoch may still produce a path.
  bool open() const {
    return state_ == State::kTrying || state_ == State::kReadyThere;
  }

 private:
  bool is_alive() const {
    return state_ != State::kLostHere && state_ != State::kSettled;
  }
  absl::Status CheckEpoch(uint32_t epoch) const;

  State state_ = State::kTrying;
  uint32_t epoch_ = 1;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_PATH_HANDSHAKE_H_
