// Gives each process one object of a type. A forked child gets a new object.

#ifndef PENSTOCK_TRANSPORT_BASE_PER_PROCESS_H_
#define PENSTOCK_TRANSPORT_BASE_PER_PROCESS_H_

#include <pthread.h>

#include <atomic>

namespace penstock {
namespace base {

// Holds the process's only T, which is made at the first use and never
// destroyed. The child of a fork gets its own T, because a thread of the parent
// may have held a lock of the parent's T.
//
// `T` must be a type local to one .cc file, with a constructor that takes no
// arguments.
template <typename T>
class PerProcess {
 public:
  // Returns this process's object. Thread-safe.
  static T* Get() {
    T* object = current_.load(std::memory_order_acquire);
    if (object != nullptr) return object;
    (void)&registered_;  // makes the variable exist
    T* const made = new T;
    if (current_.compare_exchange_strong(object, made)) return made;
    delete made;
    return object;
  }

 private:
  static void ForgetInChild() { current_.store(nullptr); }

  static std::atomic<T*> current_;
  // Registers the fork handler before main(), or while the library is loaded.
  // If the first Get() registered the handler, a child forked at that moment
  // would wait forever for the thread that registers.
  static const int registered_;
};

template <typename T>
std::atomic<T*> PerProcess<T>::current_{nullptr};

template <typename T>
const int PerProcess<T>::registered_ =
    pthread_atfork(nullptr, nullptr, &PerProcess<T>::ForgetInChild);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PER_PROCESS_H_
