// Room for rows that a push will make.

#ifndef PENSTOCK_PS_SPARSE_RESERVATION_H_
#define PENSTOCK_PS_SPARSE_RESERVATION_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace penstock::ps::sparse {

class Table;

// What Table::Reserve() has set aside of each shard. Nobody else gets it, and
// what is left of it goes back with the destructor. It holds up nothing: calls
// and snapshots go on.
//
// The table outlives it. For one thread at a time; others may use the table
// meanwhile, also by reservations of their own.
class Reservation {
 public:
  // Holds nothing, of any table.
  Reservation() = default;
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  // Takes over what `other` holds. INVALID_ARGUMENT if that is of another
  // table; it is given back then.
  absl::Status Merge(Reservation other);

  // The rows that it has room for.
  size_t rows() const;

 private:
  friend class Table;
  explicit Reservation(Table* table);

  // Returns INVALID_ARGUMENT if it holds room in another table.
  absl::Status CheckIsOf(Table* table);
  // Returns the room that is left in a shard. Table changes it together with
  // the shard's own count.
  size_t* OfShard(size_t shard) { return &rows_[shard]; }
  void Release();

  Table* table_ = nullptr;
  std::vector<size_t> rows_;  // of each shard; empty without a table
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_RESERVATION_H_
