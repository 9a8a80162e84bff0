// Runs the real etcd as a process.

#ifndef PENSTOCK_TESTS_PS_ETCD_REAL_ETCD_H_
#define PENSTOCK_TESTS_PS_ETCD_REAL_ETCD_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/process/child.h"

namespace penstock::ps::etcd {

// A real etcd with one member, on free ports of this host, with its data in the
// test's folder. Leases may be as short as a second.
class RealEtcd {
 public:
  // Returns true if etcd is installed; see tools/setup.
  static bool IsInstalled();
  // Returns the path of the program, or "".
  static std::string Program();

  // Starts etcd, with more arguments, and waits until it serves. `scheme` is
  // "http" or "https". Returns null on failure, and logs etcd's output.
  static std::unique_ptr<RealEtcd> Start(
      const std::vector<std::string>& arguments = {},
      const std::string& scheme = "http");

  std::string address() const { return address_; }
  process::Child* process() { return process_.get(); }

 private:
  RealEtcd(std::unique_ptr<process::Child> process, std::string address)
      : process_(std::move(process)), address_(std::move(address)) {}

  const std::unique_ptr<process::Child> process_;
  const std::string address_;
};

}  // namespace penstock::ps::etcd

// Skips the test if there is no etcd.
#define SKIP_WITHOUT_ETCD()                                              \
  if (!::penstock::ps::etcd::RealEtcd::IsInstalled()) {                  \
    GTEST_SKIP() << "there is no etcd: run tools/setup, or install the " \
                    "package etcd-server";                               \
  }                                                                      \
  static_assert(true, "")

#endif  // PENSTOCK_TESTS_PS_ETCD_REAL_ETCD_H_
