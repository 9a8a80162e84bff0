// A simulated machine: a Host whose files are a tree that the test writes.

#ifndef PENSTOCK_TESTS_CLI_FAKE_HOST_H_
#define PENSTOCK_TESTS_CLI_FAKE_HOST_H_

#include <string>

#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"

namespace penstock::cli {

// A machine without RDMA or GPUs, with empty /proc and /sys. Owns a folder,
// which the destructor removes.
class FakeHost {
 public:
  FakeHost();
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // Writes a file, and makes its folders.
  void Write(const std::string& path, const std::string& text);
  void Link(const std::string& path, const std::string& target);
  // Makes a folder in place of a file, so that reading the file fails.
  void MakeUnreadable(const std::string& path);
  void MakePipe(const std::string& path);
  void Remove(const std::string& path);
  const std::string& root() const { return root_; }

  // Adds mlx5_0 with port 1, on interface "eth2", to /sys and /dev.
  void AddAdapter();
  // Makes the survey find the address 10.0.0.1 on the adapter.
  void AddAddress();

  Host* operator->() { return &host_; }
  const Host& operator*() const { return host_; }

 private:
  std::string root_;
  Host host_;
};

// Returns the only finding with this subject. If there is not exactly one,
// fails the test and returns an empty finding.
Finding Only(const Findings& findings, const std::string& subject);
bool Mentions(const Findings& findings, const std::string& text);

}  // namespace penstock::cli

#endif  // PENSTOCK_TESTS_CLI_FAKE_HOST_H_
