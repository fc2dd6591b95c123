# Target simdjson::simdjson: the installed package where there is one, else its release, built with ours.
#
# include(cmake/Simdjson.cmake) from any room; doing it twice is fine. A build without network can point
# FETCHCONTENT_SOURCE_DIR_SIMDJSON at an unpacked release.
include_guard(GLOBAL)

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # seen by every room, whichever asks first
find_package(simdjson 3.0 QUIET)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
if(NOT TARGET simdjson::simdjson)
  message(STATUS "simdjson is not installed: fetching its release")
  include(FetchContent)
  set(SIMDJSON_DEVELOPER_MODE OFF CACHE BOOL "" FORCE)
  set(BUILD_SHARED_LIBS OFF)
  FetchContent_Declare(simdjson
    GIT_REPOSITORY https://github.com/simdjson/simdjson.git
    GIT_TAG v3.10.1
    GIT_SHALLOW TRUE
    SYSTEM EXCLUDE_FROM_ALL)
  FetchContent_MakeAvailable(simdjson)
  if(NOT TARGET simdjson::simdjson)
    add_library(simdjson::simdjson ALIAS simdjson)
  endif()
  set(simdjson_VERSION "3.10.1")
endif()
set(TORCHTRT_VIZ_SIMDJSON_VERSION "${simdjson_VERSION}" CACHE INTERNAL "")
message(STATUS "simdjson ${simdjson_VERSION}")
