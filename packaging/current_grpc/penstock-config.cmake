# Defines penstock::penstock, which brings gRPC, for programs with gRPC 1.60 or
# later (docs/current_grpc.md). Uses pkg-config, as Penstock's build does.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
find_dependency(Threads)

if(NOT TARGET penstock::penstock)
  get_filename_component(_penstock_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  set(_penstock_path "$ENV{PKG_CONFIG_PATH}")
  set(ENV{PKG_CONFIG_PATH} "${_penstock_lib}/pkgconfig:${_penstock_path}")
  pkg_check_modules(_penstock REQUIRED IMPORTED_TARGET GLOBAL penstock)
  set(ENV{PKG_CONFIG_PATH} "${_penstock_path}")
  add_library(penstock::penstock INTERFACE IMPORTED)
  target_link_libraries(penstock::penstock INTERFACE PkgConfig::_penstock
                                                     Threads::Threads)
  # CMake's own targets of gRPC and protobuf, where they are installed.
  find_package(gRPC CONFIG QUIET)
endif()
