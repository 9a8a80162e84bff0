// Waits until all other threads of this process are idle.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_IDLE_THREADS_H_
#define PENSTOCK_TESTS_PS_SIMULATION_IDLE_THREADS_H_

#include <map>

namespace penstock::ps {

// Reads the states of this process's threads from /proc. Servers and clients
// have threads. If the simulation acts only while these are idle, its order of
// events depends on the seed alone. A thread that sleeps for a time counts as
// idle. Not thread-safe.
class IdleThreads {
 public:
  IdleThreads() = default;
  ~IdleThreads();
  IdleThreads(const IdleThreads&) = delete;
  IdleThreads& operator=(const IdleThreads&) = delete;

  // Blocks until all threads except the caller are idle.
  void Await();

 private:
  bool AllWait();
  bool Waits(int thread);

  std::map<int, int> files_;  // by thread: its descriptor of /proc
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_IDLE_THREADS_H_
