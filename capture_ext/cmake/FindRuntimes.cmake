# Find executorch as it is installed for the Python that builds: no path is set by hand. torch is found in the
# process, when its operators are loaded (torch_ops/torch_functions.hpp).
#
# Gives the imported targets executorch::*, with EXECUTORCH_VERSION.

function(_package_dir module out)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      # without the working directory: a build tree has a folder of that name
      "import sys; sys.path.remove(''); import importlib.util as u; s = u.find_spec('${module}'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT dir)
    message(FATAL_ERROR "${module} is not installed for ${Python_EXECUTABLE}: it is a build requirement of the "
      "capture extension (or configure with -DTORCHTRT_VIZ_CAPTURE=OFF)")
  endif()
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

function(_package_version distribution out)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import importlib.metadata as m; print(m.version('${distribution}'))"
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

_package_dir(executorch EXECUTORCH_DIR)
_package_version(executorch EXECUTORCH_VERSION)
find_package(executorch CONFIG REQUIRED PATHS "${EXECUTORCH_DIR}" "${EXECUTORCH_DIR}/share/cmake" NO_DEFAULT_PATH)

# The imported targets put this environment's absolute path into everything that links them. The package's
# libraries find the runtime relative to themselves (the rpaths of the CMakeLists above); a build inside the source
# tree has no such neighbour and names it.
foreach(component runtime threadpool etdump kernels_optimized kernels_quantized backend_xnnpack)
  if(TARGET executorch::${component})
    get_target_property(options executorch::${component} INTERFACE_LINK_OPTIONS)
    list(FILTER options EXCLUDE REGEX "^LINKER:-rpath,")
    set_target_properties(executorch::${component} PROPERTIES INTERFACE_LINK_OPTIONS "${options}")
  endif()
endforeach()
if(TORCHTRT_VIZ_INPLACE OR TORCHTRT_VIZ_TESTS)
  foreach(kind LIBRARY MODULE PROGRAM)
    list(APPEND TORCHTRT_VIZ_${kind}_RPATH "${EXECUTORCH_DIR}/lib")
  endforeach()
endif()

message(STATUS "executorch ${EXECUTORCH_VERSION}")
