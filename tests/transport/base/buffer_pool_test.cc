#include "transport/base/buffer_pool.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(BufferPool, GivesOutWhatWasGivenBack) {
  BufferPool pool;
  std::string buffer(600, 'x');
  const char* const memory = buffer.data();
  pool.Give(std::move(buffer));
  const std::string again = pool.Take();
  EXPECT_EQ(again, "");
  EXPECT_EQ(again.data(), memory);
  EXPECT_NE(pool.Take().data(), memory);
}

TEST(BufferPool, KeepsFewAndShortOnes) {
  BufferPool pool;
  pool.Give(std::string(BufferPool::kMaxBytes + 1, 'x'));
  pool.Give(std::string(BufferPool::kMinBytes - 1, 'x'));
  EXPECT_EQ(pool.Take().capacity(), BufferPool::kMinBytes);
  for (size_t i = 0; i <= BufferPool::kMaxBuffers; ++i) {
    pool.Give(std::string(600, 'x'));
  }
  for (size_t i = 0; i < BufferPool::kMaxBuffers; ++i) {
    EXPECT_EQ(pool.Take().capacity(), 600u);
  }
  EXPECT_EQ(pool.Take().capacity(), BufferPool::kMinBytes);
}

}  // namespace
}  // namespace base
}  // namespace penstock
