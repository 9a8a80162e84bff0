// Chooses a session's fast path from what both sides offered: pure.

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

// The connecting side tries what both sides offer, in its own order of
// preference. Each failure adds to the reason that people are shown in the end.
class PathNegotiator {
 public:
  explicit PathNegotiator(std::vector<wire::FabricOffer> mine)
      : mine_(std::move(mine)) {}

  // Takes what the peer's hello offers.
  void OnPeerOffers(std::vector<wire::FabricOffer> peer);
  // Returns the peer's offer to try next. None: stay on the lifeline.
  absl::optional<wire::FabricOffer> Next();
  // Begins anew, with the peer's offers of before.
  void Restart();
  // Notes why the attempt on what Next() returned last, or a path that was in
  // use, failed.
  void OnFailure(metrics::Reason cause, const std::string& reason);
  // For the accepting side: notes why no path comes over `fabric` any more. May
  // be called before the peer's offers are here.
  void OnWaitFailed(const std::string& fabric, const std::string& reason);
  // For the accepting side: whether there is a fabric that both sides could use
  // and whose wait has not failed.
  bool MayStillCome() const;

  // Returns true if both sides could use some fabric besides the lifeline.
  bool HasCommonFabric() const;
  // Returns, for people, why there is only the lifeline. The text is printable
  // and short for any input of the peer.
  std::string Reason() const;
  // Returns the kind of the last reason, or of the loss of a path before it.
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
