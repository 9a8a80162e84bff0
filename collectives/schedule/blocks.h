// The blocks of a buffer: one for each rank.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_BLOCKS_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_BLOCKS_H_

#include <cstdint>

namespace penstock::collectives {

// A range of elements in a buffer.
struct Range {
  int64_t begin = 0;
  int64_t count = 0;
};

// Returns block `index` of `blocks`. The blocks are contiguous and cover
// `count` elements. Each of the first count % blocks blocks has one element
// more than the others.
Range BlockOf(int index, int blocks, int64_t count);

// Returns blocks `first` to `first` + `number` - 1 as one range.
Range BlocksOf(int first, int number, int blocks, int64_t count);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_BLOCKS_H_
