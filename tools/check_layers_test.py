#!/usr/bin/env -S python3 -B
"""Tests check_layers on small trees."""

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parent / "check_layers"


class CheckLayersTest(unittest.TestCase):

    def check(self, file, text):
        """Returns the offences in a tree of one file."""
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root, file)
            path.parent.mkdir(parents=True)
            path.write_text(text)
            run = subprocess.run([TOOL, root], stdout=subprocess.PIPE,
                                 text=True, check=False)
            self.assertEqual(run.returncode, 1 if run.stdout else 0)
            return run.stdout

    def forbids(self, file, include, why):
        self.assertIn(f"{file}:2: includes {include}: {why}",
                      self.check(file, f'// x\n#include "{include}"\n'))

    def forbids_layer(self, file, include, layer):
        self.forbids(file, include, f"{layer} may not, see tools/layers.bzl")

    def allows(self, file, include):
        self.assertEqual("", self.check(file, f"#include <{include}>\n"))

    def test_only_the_grpc_layer_and_those_above_know_grpc(self):
        why = "nothing below transport/grpc knows gRPC"
        self.forbids("transport/session/a.h", "grpcpp/grpcpp.h", why)
        self.forbids("transport/wire/a.cc", "grpc/slice.h", why)
        self.forbids("tests/transport/base/a.cc", "x/echo.grpc.pb.h", why)
        self.forbids("transport/fabric/tcp/a.h", "transport/grpc/b.h", why)
        self.allows("transport/grpc/a.h", "grpcpp/grpcpp.h")
        self.allows("ps/a.h", "grpcpp/grpcpp.h")

    def test_internal_headers_stay_in_the_grpc_layer(self):
        why = "gRPC's internal headers stay in transport/grpc"
        self.forbids("ps/a.cc", "src/core/lib/slice/slice.h", why)
        self.forbids("transport/penstock.cc", "src/cpp/server/x.h", why)
        self.allows("transport/grpc/a.cc", "src/core/lib/slice/slice.h")

    def test_verbs_headers_stay_in_the_verbs_fabric(self):
        why = "verbs headers stay in transport/fabric/verbs"
        self.forbids("transport/memory/a.h", "infiniband/verbs.h", why)
        self.forbids("bench/rpc/a.cc", "rdma/rdma_cma.h", why)
        self.allows("transport/fabric/verbs/a.h", "infiniband/verbs.h")
        self.allows("tests/vm/a.cc", "infiniband/verbs.h")

    def test_nobody_reads_the_environment_of_a_set_uid_programs_caller(self):
        why = ("a set-uid program must not follow its caller's environment: "
               "secure_getenv")
        for call in ("std::getenv(name)", "getenv (name)", "::getenv(name)"):
            self.assertIn(f"transport/a.cc:1: {why}",
                          self.check("transport/a.cc", f"x = {call};\n"))
        self.assertEqual("", self.check("ps/a.cc",
                                        "x = secure_getenv(name);\n"))
        self.assertEqual("", self.check("bench/rpc/a.cc",
                                        "x = getenv(name);\n"))

    def test_settings_are_read_by_their_table(self):
        call = "x = secure_getenv(name);\n"
        for file in "transport/a.cc", "transport/session/a.cc":
            self.assertIn(f"{file}:1: a setting is a row of",
                          self.check(file, call))
        for file in "transport/settings/row.h", "transport/base/log.cc":
            self.assertEqual("", self.check(file, call))

    def test_timeouts_follow_the_steady_clock(self):
        for call in ("mu_.AwaitWithTimeout(c, t)", "cv.WaitWithDeadline (t)",
                     "came.WaitForNotificationWithTimeout(t)"):
            self.assertIn("ps/a.cc:1: Abseil's timeouts follow the system's",
                          self.check("ps/a.cc", f"x = {call};\n"))
            self.assertEqual("", self.check("tests/ps/a.cc", f"{call};\n"))

    def test_fabrics_never_include_one_another(self):
        self.forbids_layer("transport/fabric/tcp/a.h",
                           "transport/fabric/shm/b.h", "transport/fabric/tcp")
        self.allows("transport/fabric/tcp/a.h", "transport/fabric/tcp/b.h")
        self.allows("transport/fabric/tcp/a.h", "transport/fabric/fabric.h")
        self.allows("tests/transport/session/a.cc",
                    "transport/fabric/fake/fake.h")

    def test_the_layers_above_the_fabrics_know_only_the_interface(self):
        self.allows("transport/session/a.h", "transport/fabric/fabric.h")
        for include in "transport/fabric/fake/b.h", "transport/fabric/b.h":
            self.forbids_layer("transport/session/a.h", include,
                               "transport/session")

    def test_no_layer_includes_one_above_it(self):
        self.forbids_layer("transport/base/a.h", "transport/wire/b.h",
                           "transport/base")
        self.forbids_layer("transport/memory/a.h",
                           "transport/fabric/fabric.h", "transport/memory")
        self.forbids_layer("transport/protocol/a.h",
                           "transport/session/b.h", "transport/protocol")
        self.forbids_layer("transport/grpc/a.h", "penstock/penstock.h",
                           "transport/grpc")
        self.forbids_layer("tensor_service/a.h", "ps/b.h", "tensor_service")
        self.forbids_layer("ps/a.h", "examples/digits/b.h", "ps")
        self.allows("transport/session/a.h", "transport/protocol/b.h")
        self.allows("ps/a.h", "tensor_service/b.h")

    def test_the_transport_knows_nothing_above_it(self):
        self.forbids_layer("transport/grpc/a.h", "ps/client.h",
                           "transport/grpc")
        self.forbids_layer("transport/penstock.cc", "bench/rpc/a.h",
                           "transport")

    def test_what_is_above_the_transport_knows_its_face_only(self):
        self.allows("examples/greeter/a.cc", "penstock/penstock.h")
        self.forbids_layer("examples/greeter/a.cc", "transport/grpc/b.h",
                           "examples/greeter")

    def test_a_new_folder_is_a_layer(self):
        self.assertIn("transport/new/a.h: its folder is not in "
                      "tools/layers.bzl",
                      self.check("transport/new/a.h", ""))

    def test_long_files_are_to_be_split(self):
        self.assertEqual("", self.check("ps/a.cc", "\n" * 400))
        self.assertIn("ps/a.cc: 401 lines", self.check("ps/a.cc", "\n" * 401))

    def methods(self, body, count):
        """Expects that a class with this body has so many methods."""
        filler = "void F();\n" * (41 - count)
        self.assertIn("ps/a.h: class A has 41 methods, split it: 40 at most\n",
                      self.check("ps/a.h", f"class A {{\n{filler}{body}}};\n"))
        self.assertEqual("", self.check(
            "ps/a.h", f"class A {{\n{filler[10:]}{body}}};\n"))

    def test_methods_are_counted(self):
        self.methods("A();\nexplicit A(int b) : b_{b}, c_(1) { D(); }\n", 2)
        self.methods("private:\n~A() override;\nstatic int B();\n", 2)
        self.methods("int b() const { return b_; }\nint c() { if (d()) {} }\n",
                     2)
        self.methods("void B(const C& c = D()) ABSL_LOCKS_EXCLUDED(mu_);\n", 1)
        self.methods("bool operator()(int) const;\nA& operator=(A&&);\n", 2)
        self.methods("std::map<int, F<void()>> B();\n"
                     "template <typename T>\nvoid C(T t) { t(); }\n", 2)

    def test_members_types_and_deleted_methods_are_not_methods(self):
        self.methods("std::function<void(int)> f_;\nint (*g_)(int);\n"
                     "int h_ ABSL_GUARDED_BY(mu_) = H();\nint i_{I()};\n", 0)
        self.methods("A(const A&) = delete;\nfriend void F(int);\n"
                     "using B = void(int);\nstatic_assert(C(), \"x();\");\n"
                     "// void D();\n", 0)
        self.methods("enum class E { kF = G(1) };\nclass B;\n"
                     "struct C : D<E> { void F(); void G(); };\n", 0)

    def test_a_class_that_was_split_leaves_the_list(self):
        self.assertIn("transport/device/api.h: remove class Api from",
                      self.check("transport/device/api.h", "class Api {};\n"))


if __name__ == "__main__":
    unittest.main()
