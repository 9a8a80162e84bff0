// Runs parts of a test that need another user, namespace or limit in a forked
// child, and connects the child with the test.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace penstock {
namespace fabric {
namespace shm {

constexpr uid_t kOtherUid = 12345;

// Runs `body` in a child of this process. The child prints failed expectations,
// which make Join() return false. The child ends by _exit().
class ForkedChild {
 public:
  explicit ForkedChild(const std::function<void()>& body);
  ~ForkedChild();
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  // Waits for the child. Returns true if it ended without a failure.
  bool Join();

 private:
  pid_t pid_ = -1;
};

// Permanently changes the user of this process, which must be a child. Fails
// the test on failure.
void BecomeUser(uid_t uid);

bool IsRoot();

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_CHILD_H_
