// Tests the public functions that declare memory for sending.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/penstock.h"

namespace penstock::e2e {
namespace {

TEST(RegisteredMemoryTest, IsNamedOnceAtATime) {
  const std::vector<char> memory(1000);
  auto registered = RegisterMemory(memory.data(), memory.size());
  ASSERT_NE(registered, nullptr);
  EXPECT_EQ(RegisterMemory(memory.data(), memory.size()), nullptr);
  EXPECT_EQ(RegisterMemory(memory.data() + 999, 1), nullptr);
  registered.reset();
  EXPECT_NE(RegisterMemory(memory.data() + 999, 1), nullptr);
}

TEST(RegisteredMemoryTest, NothingIsNoMemory) {
  const char byte = 0;
  EXPECT_EQ(RegisterMemory(nullptr, 1), nullptr);
  EXPECT_EQ(RegisterMemory(&byte, 0), nullptr);
}

}  // namespace
}  // namespace penstock::e2e
