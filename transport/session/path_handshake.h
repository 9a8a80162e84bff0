// Agrees with the peer on the use of a path next to the lifeline, and on its
// end, by frames over the lifeline. Pure.
//
// Each attempt has a number, its epoch; the first is that of the hello.
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
// "These four" are kTrying, kReadyThere, kReadyHere and kInUse. An event of an
// earlier epoch, and any that is not listed, changes nothing: the two sides may
// lose a path in the same moment. kSettled is the lifeline alone; it is reached
// when the peer has said so too, which it cannot if it is gone altogether.

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
    bool drop = false;  // the path, or the attempt
    bool send_lost = false;
    bool send_ready = false;
    bool use = false;     // and report
    bool report = false;  // that the lifeline is all there is
    bool send_wanted = false;
    bool listen = false;
  };

  Actions OnLocalReady();
  Actions OnLocalLost();
  Actions OnNothingToTry();
  Actions Retry();

  // From the peer. INVALID_ARGUMENT: an epoch that cannot be.
  absl::Status OnPeerReady(uint32_t epoch, Actions* actions);
  absl::Status OnPeerLost(uint32_t epoch, Actions* actions);
  absl::Status OnPeerWanted(uint32_t epoch, Actions* actions);

  State state() const { return state_; }
  uint32_t epoch() const { return epoch_; }
  // A path may still come of this epoch.
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
