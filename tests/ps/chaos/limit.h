// A limit for the time of a test, which ends the whole program.

#ifndef PENSTOCK_TESTS_PS_CHAOS_LIMIT_H_
#define PENSTOCK_TESTS_PS_CHAOS_LIMIT_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"

namespace penstock::ps {

// Ends this program with exit code 1 if this object lives longer than `limit`,
// rounded to seconds. Time in which the program was stopped or got no processor
// does not count. Use this class for tests that may hang in a call without a
// timeout. The program first prints the text of `report`, which another thread
// calls.
class Limit {
 public:
  Limit(absl::Duration limit, std::function<std::string()> report);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool ends_ = false;  // with mu_ held
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_LIMIT_H_
