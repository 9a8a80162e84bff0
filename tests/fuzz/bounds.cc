#include "tests/fuzz/bounds.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// Defined if a sanitizer with its own allocator is linked.
extern "C" size_t __sanitizer_get_current_allocated_bytes()
    __attribute__((weak));

namespace penstock {
namespace fuzz {
namespace {

constexpr uint64_t kMaxAddressSpace = uint64_t{16} << 30;
constexpr uint64_t kHeldPerByte = 64;
constexpr double kSeconds = 0.1;
constexpr double kSecondsPerByte = 1e-6;

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t HeldBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double SecondsOfThread() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * now.tv_nsec;
}

// Limits the address space. Does nothing with a sanitizer, which reserves more
// address space than the limit.
void LimitAddressSpace() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) return;
  const rlimit limit = {kMaxAddressSpace, kMaxAddressSpace};
  (void)setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

Random::Random() : end_(time(nullptr) + Setting("BOUNDS_SECONDS", 1)) {
  LimitAddressSpace();
  const uint64_t seed = Setting("BOUNDS_SEED", std::random_device()());
  std::printf("BOUNDS_SEED=%llu repeats this\n",
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  bits_.seed(seed);
}

bool Random::GoesOn() const { return time(nullptr) <= end_; }

uint64_t Random::Number(int bits) {
  const auto length = static_cast<int>(Below(bits + 1));
  if (length == 0) return 0;
  const uint64_t top = uint64_t{1} << (length - 1);
  if (!OneIn(4)) return top | (bits_() & (top - 1));
  // Draws a number next to a power of two. The sum may be -1, or 2^bits, which
  // wraps to 0.
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  return (2 * top + Below(5) - 2) & mask;
}

std::string Random::Text(size_t most) {
  int bits = 1;
  while (most >> bits != 0) ++bits;
  std::string text(std::min<uint64_t>(most, Number(bits)), '\0');
  for (char& byte : text) byte = static_cast<char>(bits_());
  return text;
}

Cost::Cost() : held_before_(HeldBytes()), seconds_before_(SecondsOfThread()) {}

::testing::AssertionResult Cost::IsWithin(size_t input_bytes,
                                          uint64_t budget) const {
  const uint64_t held = HeldBytes();
  const double seconds = SecondsOfThread() - seconds_before_;
  const uint64_t may_hold = held_before_ + budget + kHeldPerByte * input_bytes;
  if (held > may_hold) {
    return ::testing::AssertionFailure()
           << input_bytes << " bytes of input hold " << held - held_before_;
  }
  if (seconds > kSeconds + kSecondsPerByte * input_bytes) {
    return ::testing::AssertionFailure()
           << input_bytes << " bytes of input took " << seconds << " s";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fuzz
}  // namespace penstock
