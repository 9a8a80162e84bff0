// The interface of a storage for rows that have no room in a table's memory.

#ifndef PENSTOCK_PS_SPARSE_TIER_H_
#define PENSTOCK_PS_SPARSE_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::sparse {

// A storage for the rows of one table, as bytes by shard and id. All rows have
// the same size. The contents are lost when the process ends; use checkpoints.
//
// Thread-safe, but only one thread at a time accesses the rows of one shard.
// Calls are made under the shard's lock, so a slow call delays the shard's
// pulls and pushes.
class Tier {
 public:
  struct Key {
    uint32_t shard;
    uint64_t id;
  };

  // An iterator over all rows at one point in time. For one thread; destroy it
  // before the tier.
  class Walk {
   public:
    virtual ~Walk() = default;
    // Copies the next row to `bytes`. Returns false at the end.
    virtual absl::StatusOr<bool> Next(char* bytes, size_t size) = 0;
  };

  virtual ~Tier() = default;

  // Stores a row that is not in the tier. Every error means that there is no
  // room now.
  virtual absl::Status Put(Key key, absl::string_view bytes) = 0;
  // Copies a row to `bytes`. Returns false if the row is not in the tier. Every
  // error makes the table fail, because the table's contents are then unknown.
  virtual absl::StatusOr<bool> Get(Key key, char* bytes, size_t size) = 0;
  // Erases a row that is in the tier. Every error makes the table fail, as in
  // Get().
  virtual absl::Status Erase(Key key) = 0;
  // Returns an estimate of how many bytes of rows still fit. Other writers may
  // use this room first.
  virtual uint64_t BytesLeft() const = 0;
  // Returns true if Put() can immediately use the room that Erase() frees, even
  // if there is no other room. True at a limit of bytes, false on a full disk.
  virtual bool ErasedIsRoom() const = 0;
  // Begins a walk over the current rows, in any order.
  virtual absl::StatusOr<std::unique_ptr<Walk>> Begin() = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_TIER_H_
