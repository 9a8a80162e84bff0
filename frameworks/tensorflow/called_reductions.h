// The reductions that the ranks of a team have called, as counted by rank 0.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_CALLED_REDUCTIONS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_CALLED_REDUCTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penstock {
namespace tensorflow {

// Counts the calls of each key and rank, to find reductions that all ranks have
// called. A rank may call a key again before the others have called it once.
// Not thread-safe.
class CalledReductions {
 public:
  explicit CalledReductions(int ranks) : ranks_(ranks) {}

  // Records that a rank has called a reduction, or has withdrawn its call.
  void Add(int rank, const std::string& key) { Change(rank, key, 1); }
  void Remove(int rank, const std::string& key) { Change(rank, key, -1); }
  // If all ranks have called `key`, removes one call of each rank and returns
  // true. Otherwise returns false.
  bool Take(const std::string& key);
  // Undoes a Take().
  void PutBack(const std::string& key);

 private:
  // By rank. A count is below 0 if a rank has withdrawn a call that Take() had
  // removed.
  using Counts = std::vector<int64_t>;

  void Change(int rank, const std::string& key, int change);

  const int ranks_;
  std::map<std::string, Counts> calls_;  // entries with a count other than 0
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_CALLED_REDUCTIONS_H_
