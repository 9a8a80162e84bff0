// A rank that a test moves by hand.

#ifndef PENSTOCK_TESTS_COLLECTIVES_NET_MEMBER_H_
#define PENSTOCK_TESTS_COLLECTIVES_NET_MEMBER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/listener.h"

namespace penstock::collectives {

// A rank that takes part in the forming of a group, and afterwards sends only
// what the test says. Acknowledges what arrives, and does nothing with it.
class Member {
 public:
  // Blocks until all ranks have come.
  Member(int rank, std::unique_ptr<Listener> listener,
         const std::vector<std::string>& addresses);

  // Null if the group was not formed.
  Links* links() { return links_.get(); }

 private:
  const std::unique_ptr<Listener> listener_;
  const std::shared_ptr<Ledger> ledger_;
  std::unique_ptr<Links> links_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_NET_MEMBER_H_
