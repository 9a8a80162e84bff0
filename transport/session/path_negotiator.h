// Chooses a session's fast path from what both sides offered: pure.

#ifndef PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

// The connecting side tries, in its own order of preference, what both sides
// offer; each failure adds to the reason that is shown in the end.
class PathNegotiator {
 public:
  explicit PathNegotiator(std::vector<wire::FabricOffer> mine)
      : mine_(std::move(mine)) {}

  // The peer's hello is here.
  void OnPeerOffers(std::vector<wire::FabricOffer> peer);
  // The offer of the peer to try next; none: stay on the lifeline.
  absl::optional<wire::FabricOffer> Next();
  // Begins anew, with the peer's offers of before.
  void Restart();
  // The attempt on what Next() returned last, or a path that was in use,
  // failed.
  void OnFailure(const std::string& reason);

  // Whether both sides could use some fabric besides the lifeline.
  bool HasCommonFabric() const;
  // Why the lifeline is all there is, for people: printable and short, whatever
  // the peer has said.
  std::string Reason() const;
  // The name of what Next() returned last.
  const std::string& current() const { return current_; }

 private:
  void JudgeOffers();
  const wire::FabricOffer* PeerOffer(const std::string& fabric) const;
  void AddReason(const std::string& fabric, const std::string& text);

  std::vector<wire::FabricOffer> mine_;
  std::vector<wire::FabricOffer> peer_;
  size_t next_ = 0;
  std::string current_;
  std::string reason_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_PATH_NEGOTIATOR_H_
