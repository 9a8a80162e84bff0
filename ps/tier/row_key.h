// The keys of rows in the database.

#ifndef PENSTOCK_PS_TIER_ROW_KEY_H_
#define PENSTOCK_PS_TIER_ROW_KEY_H_

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "ps/sparse/tier.h"

namespace penstock::ps {

// A row's key in the database: table, shard and id, big-endian. In byte order,
// the rows of a table are adjacent.
struct RowKey {
  char bytes[16];

  static RowKey Of(uint32_t table, sparse::Tier::Key key) {
    RowKey name;
    Store(name.bytes, table, 4);
    Store(name.bytes + 4, key.shard, 4);
    Store(name.bytes + 8, key.id, 8);
    return name;
  }
  // Returns the lower bound of the table's keys. Sorts after all keys of tables
  // with lower numbers.
  static RowKey FirstOf(uint32_t table) { return Of(table, {0, 0}); }

  absl::string_view view() const { return {bytes, sizeof bytes}; }
  friend bool operator==(const RowKey& a, const RowKey& b) {
    return a.view() == b.view();
  }
  template <typename H>
  friend H AbslHashValue(H hash, const RowKey& name) {
    return H::combine(std::move(hash), name.view());
  }

 private:
  static void Store(char* to, uint64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i, number >>= 8) {
      to[i] = static_cast<char>(number);
    }
  }
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_ROW_KEY_H_
