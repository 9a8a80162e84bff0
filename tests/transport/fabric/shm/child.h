// Runs parts of a test that need another user, namespace or limit in a forked
// child, and lets it talk to the test.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace penstock {
namespace fabric {
namespace shm {

constexpr uid_t kOtherUid = 12345;

// Runs `body` in a child of this process. Failed expectations are printed
// there, and make Join() return false. The child ends by _exit().
class ForkedChild {
 public:
  explicit ForkedChild(const std::function<void()>& body);
  ~ForkedChild();
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  // Waits for the child. Returns whether it ended without a failure.
  bool Join();

 private:
  pid_t pid_ = -1;
};

// Makes this process, a child, that user for good. Fails the test if it cannot.
void BecomeUser(uid_t uid);

bool IsRoot();

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_
