#include "collectives/schedule/blocks.h"

#include <algorithm>
#include <cstdint>

namespace penstock::collectives {
namespace {

int64_t BeginOf(int index, int blocks, int64_t count) {
  return count / blocks * index + std::min<int64_t>(index, count % blocks);
}

}  // namespace

Range BlockOf(int index, int blocks, int64_t count) {
  return BlocksOf(index, 1, blocks, count);
}

Range BlocksOf(int first, int number, int blocks, int64_t count) {
  const int64_t begin = BeginOf(first, blocks, count);
  return {begin, BeginOf(first + number, blocks, count) - begin};
}

}  // namespace penstock::collectives
