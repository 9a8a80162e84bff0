#include "bench/tensors/sum.h"

#include <cstddef>
#include <cstring>

namespace penstock::bench {

uint64_t SumOf(absl::string_view bytes) {
  // Add to four independent sums, so that no addition waits for the previous
  // one.
  uint64_t sums[4] = {0, 0, 0, 0};
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(sums); at += sizeof(sums), left -= sizeof(sums)) {
    uint64_t words[4];
    memcpy(words, at, sizeof(words));
    for (int i = 0; i < 4; ++i) sums[i] += words[i];
  }
  uint64_t rest[4] = {0, 0, 0, 0};
  if (left > 0) memcpy(rest, at, left);
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += sums[i] + rest[i];
  return sum;
}

}  // namespace penstock::bench
