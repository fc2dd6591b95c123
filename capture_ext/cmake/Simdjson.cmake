# Target simdjson::simdjson, compiled once and linked statically, so that no system library is needed at run time.
#
# The source is simdjson's single-file release (simdjson.h, simdjson.cpp). The build requirement pysimdjson carries it
# in its wheels; -DTORCHTRT_VIZ_SIMDJSON_DIR=FOLDER names another copy. Where there is neither (pysimdjson has no wheel
# for the newest CPython), an installed simdjson is linked. include(cmake/Simdjson.cmake) from any room; doing it twice
# is fine.
include_guard(GLOBAL)
set(TORCHTRT_VIZ_SIMDJSON_DIR "" CACHE PATH "Folder of simdjson.h and simdjson.cpp; empty: pysimdjson's")

set(simdjson_DIR_FOUND "${TORCHTRT_VIZ_SIMDJSON_DIR}")
if(NOT simdjson_DIR_FOUND AND Python_EXECUTABLE)
  execute_process(  # -P: a folder of this name in the working directory is not meant
    COMMAND "${Python_EXECUTABLE}" -P -c
      "import importlib.util as u; s = u.find_spec('simdjson'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE simdjson_DIR_FOUND OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

if(EXISTS "${simdjson_DIR_FOUND}/simdjson.cpp" AND EXISTS "${simdjson_DIR_FOUND}/simdjson.h")
  file(STRINGS "${simdjson_DIR_FOUND}/simdjson.h" simdjson_VERSION REGEX "define SIMDJSON_VERSION " LIMIT_COUNT 1)
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" simdjson_VERSION "${simdjson_VERSION}")
  add_library(torchtrt_viz_simdjson STATIC "${simdjson_DIR_FOUND}/simdjson.cpp")
  target_include_directories(torchtrt_viz_simdjson SYSTEM PUBLIC "${simdjson_DIR_FOUND}")
  # On x86-64 the kernel for AVX-512 or AVX2 is chosen at run time, the portable one on processors before 2013: the one
  # between them is not worth compiling. Other architectures have one kernel, and this name means nothing to them.
  target_compile_definitions(torchtrt_viz_simdjson PUBLIC SIMDJSON_IMPLEMENTATION_WESTMERE=0)
  target_compile_options(torchtrt_viz_simdjson PRIVATE -w)
  if(TORCHTRT_VIZ_SANITIZE)
    target_compile_options(torchtrt_viz_simdjson PRIVATE -fsanitize=${TORCHTRT_VIZ_SANITIZE} -fno-omit-frame-pointer)
  endif()
  add_library(simdjson::simdjson ALIAS torchtrt_viz_simdjson)
  message(STATUS "simdjson ${simdjson_VERSION}: compiled from ${simdjson_DIR_FOUND}")
elseif(TORCHTRT_VIZ_SIMDJSON_DIR)
  message(FATAL_ERROR "TORCHTRT_VIZ_SIMDJSON_DIR: ${TORCHTRT_VIZ_SIMDJSON_DIR} has no simdjson.h and simdjson.cpp")
else()
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # seen by every room, whichever asks first
  find_package(simdjson 3.0 QUIET)
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  if(NOT TARGET simdjson::simdjson)
    message(FATAL_ERROR "simdjson is not at hand: install pysimdjson, which carries its source, for "
      "${Python_EXECUTABLE}, or the system's simdjson, or name a folder of simdjson.h and simdjson.cpp with "
      "-DTORCHTRT_VIZ_SIMDJSON_DIR=")
  endif()
  message(STATUS "simdjson ${simdjson_VERSION}: the installed library")
endif()
set(TORCHTRT_VIZ_SIMDJSON_VERSION "${simdjson_VERSION}" CACHE INTERNAL "")
