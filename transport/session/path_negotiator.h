// Chooses a session's fast path from what both sides offered. Does no I/O.

#ifndef PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_

#include <set>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "transport/metrics/labels.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

// The choice among the fabrics that both sides have. The connecting side tries
// the fabrics in its own order of preference. Each failure adds to the final
// reason for people.
class PathNegotiator {
 public:
  explicit PathNegotiator(std::vector<wire::FabricOffer> mine)
      : mine_(std::move(mine)) {}

  // Handles the fabrics that the peer's hello offers.
  void OnPeerOffers(std::vector<wire::FabricOffer> peer);
  // Returns the peer's offer to try next. Nullopt means: stay on the lifeline.
  absl::optional<wire::FabricOffer> Next();
  // Starts again with the peer's earlier offers.
  void Restart();
  // Records that the fabric returned by the last Next() has failed, during the
  // attempt or in use. `reason` is the cause, for people.
  void OnFailure(metrics::Reason cause, const std::string& reason);
  // On the accepting side, records why listening on `fabric` has ended. May be
  // called before the peer's offers arrive.
  void OnWaitFailed(const std::string& fabric, const std::string& reason);
  // On the accepting side, returns true if this side still listens on a fabric
  // that both sides have.
  bool MayStillCome() const;

  // Returns true if both sides have a common fabric in addition to the
  // lifeline.
  bool HasCommonFabric() const;
  // Returns the reason, for people, why only the lifeline is used. The text is
  // printable and short, even if a part of it comes from the peer.
  std::string Reason() const;
  // Returns the kind of the last reason; the loss of a path takes precedence.
  metrics::Reason cause() const { return cause_; }
  // Returns the name of the fabric that Next() returned last.
  const std::string& current() const { return current_; }

 private:
  void JudgeOffers();
  bool IsCommon(const wire::FabricOffer& mine) const;
  const wire::FabricOffer* PeerOffer(const std::string& fabric) const;
  void AddReason(metrics::Reason cause, const std::string& fabric,
                 const std::string& text);

  std::vector<wire::FabricOffer> mine_;
  std::vector<wire::FabricOffer> peer_;
  size_t next_ = 0;
  std::string current_;
  std::set<std::string> failed_waits_;
  std::string reason_;
  metrics::Reason cause_ = metrics::Reason::kNone;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_
