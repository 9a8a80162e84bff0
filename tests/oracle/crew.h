// A set of threads that are started one by one and joined together.

#ifndef PENSTOCK_TESTS_ORACLE_CREW_H_
#define PENSTOCK_TESTS_ORACLE_CREW_H_

#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::oracle {

// A set of threads. Thread-safe.
class Crew {
 public:
  ~Crew() { Join(); }
  void Run(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mu_);
    threads_.emplace_back(std::move(work));
  }
  // Joins all threads, including those that start while Join() waits.
  void Join() {
    while (true) {
      std::vector<std::thread> threads;
      {
        std::lock_guard<std::mutex> lock(mu_);
        threads.swap(threads_);
      }
      if (threads.empty()) return;
      for (std::thread& thread : threads) thread.join();
    }
  }

 private:
  std::mutex mu_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_CREW_H_
