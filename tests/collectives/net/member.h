// A rank whose messages the test sends one by one.

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

// A rank that helps to form a group, and afterwards sends only what the test
// asks for. Acknowledges received messages, and ignores them.
class Member {
 public:
  // Blocks until all ranks have come. Reaches them at `ways`, if these are
  // given, and otherwise at their addresses.
  Member(int rank, std::unique_ptr<Listener> listener,
         const std::vector<std::string>& addresses,
         const std::vector<std::string>& ways = {});

  // Null if the group was not formed.
  Links* links() { return links_.get(); }

 private:
  const std::unique_ptr<Listener> listener_;
  const std::shared_ptr<Ledger> ledger_;
  std::unique_ptr<Links> links_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_NET_MEMBER_H_
