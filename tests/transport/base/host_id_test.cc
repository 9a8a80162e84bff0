#include "transport/base/host_id.h"

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(HostId, IsOneLineAndStaysTheSame) {
  const std::string& id = HostId();
  EXPECT_TRUE(id.empty() || id.size() == 36u) << id;
  EXPECT_EQ(id.find('\n'), std::string::npos);
  EXPECT_EQ(&HostId(), &id);
}

}  // namespace
}  // namespace base
}  // namespace penstock
