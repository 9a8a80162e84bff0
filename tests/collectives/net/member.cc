#include "tests/collectives/net/member.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "collectives/net/address.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/listener.h"
#include "gtest/gtest.h"

namespace penstock::collectives {

Member::Member(int rank, std::unique_ptr<Listener> listener,
               const std::vector<std::string>& addresses,
               const std::vector<std::string>& ways)
    : listener_(std::move(listener)),
      ledger_(std::make_shared<Ledger>(rank, static_cast<int>(addresses.size()),
                                       listener_->options().polling)) {
  const auto parsed = ParseAddresses(ways.empty() ? addresses : ways);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return;
  const std::string digest = Digest(addresses);
  listener_->Admit(ledger_, digest);
  auto links = Links::Connect(*parsed, digest, listener_->options(), ledger_,
                              absl::Minutes(1));
  EXPECT_TRUE(links.ok()) << links.status();
  if (links.ok()) links_ = *std::move(links);
}

}  // namespace penstock::collectives
