// Reserves room for rows that a push will make.

#ifndef PENSTOCK_PS_SPARSE_RESERVATION_H_
#define PENSTOCK_PS_SPARSE_RESERVATION_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace penstock::ps::sparse {

class Table;

// Room for new rows that Table::Reserve() has reserved in each shard. Other
// callers cannot use this room. The destructor returns unused room. A
// reservation does not block calls or snapshots.
//
// The table must outlive this object. One thread at a time may use a
// reservation. Other threads may use the table meanwhile, and have other
// reservations.
class Reservation {
 public:
  // Creates an empty reservation without a table.
  Reservation() = default;
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  // Moves the room of `other` to this reservation. Returns INVALID_ARGUMENT,
  // and releases `other`, if it belongs to another table.
  absl::Status Merge(Reservation other);

  // Returns the number of reserved rows.
  size_t rows() const;

 private:
  friend class Table;
  explicit Reservation(Table* table);

  // Binds an empty reservation to `table`. Returns INVALID_ARGUMENT if the
  // reservation is bound to another table.
  absl::Status CheckIsOf(Table* table);
  // Returns a pointer to the number of reserved rows of a shard. Table changes
  // this number together with the shard's own count.
  size_t* OfShard(size_t shard) { return &rows_[shard]; }
  void Release();

  Table* table_ = nullptr;
  std::vector<size_t> rows_;  // by shard; empty without a table
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_RESERVATION_H_
