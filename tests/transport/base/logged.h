// Captures another process's stderr.

#ifndef PENSTOCK_TESTS_TRANSPORT_BASE_LOGGED_H_
#define PENSTOCK_TESTS_TRANSPORT_BASE_LOGGED_H_

#include <functional>
#include <string>

namespace penstock {

// Runs `body` in a forked child with `fd` as its stderr. Expects that the child
// ends within a minute, and kills it otherwise.
void RunWithStderr(int fd, const std::function<void()>& body);

// Returns the stderr output of a child that runs `body`.
std::string LoggedBy(const std::function<void()>& body);

}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_BASE_LOGGED_H_
