// Where a table keeps rows that have no room in its memory.

#ifndef PENSTOCK_PS_SPARSE_TIER_H_
#define PENSTOCK_PS_SPARSE_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::sparse {

// The rows of one table, as bytes, by shard and id. All rows of a table have
// the same size. Nothing outlives the process: that is for checkpoints.
//
// Thread-safe; only one thread at a time asks for the rows of one shard. Calls
// are made under that shard's lock, so what they wait for, its pulls and pushes
// wait for.
class Tier {
 public:
  struct Key {
    uint32_t shard;
    uint64_t id;
  };

  // All rows of one point in time. For one thread; ends before the tier.
  class Walk {
   public:
    virtual ~Walk() = default;
    // Copies the next row to `bytes`. Returns false at the end.
    virtual absl::StatusOr<bool> Next(char* bytes, size_t size) = 0;
  };

  virtual ~Tier() = default;

  // Keeps a row that it does not have. RESOURCE_EXHAUSTED, or another error: it
  // has no room for it now.
  virtual absl::Status Put(Key key, absl::string_view bytes) = 0;
  // Copies a row to `bytes`. Returns false if it does not have it. After an
  // error nobody can say what the table has: the table fails.
  virtual absl::StatusOr<bool> Get(Key key, char* bytes, size_t size) = 0;
  // Forgets a row that it has. An error is as one of Get().
  virtual absl::Status Erase(Key key) = 0;
  // How many bytes of rows more have room, as far as can be known: others may
  // take it.
  virtual uint64_t BytesLeft() const = 0;
  // Whether the room that Erase() gives back is there for a Put() at once, even
  // if there is no other: so it is where a limit is reached, and not where a
  // disk is full.
  virtual bool ErasedIsRoom() const = 0;
  // Returns the rows that there are now, in any order.
  virtual absl::StatusOr<std::unique_ptr<Walk>> Begin() = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_TIER_H_
