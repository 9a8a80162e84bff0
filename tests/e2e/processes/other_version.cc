// A library to preload, which makes the loaded gRPC report another version.

extern "C" const char* grpc_version_string() { return "30.1.2"; }
