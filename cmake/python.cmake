# The wheel: Python module _cairn over the C ABI, the shared library it stands on, and the native commands.
# `pip install .` and `./dev build` both install the component cairn_wheel through scikit-build-core.
add_custom_target(cairn_wheel)
set(wheel COMPONENT cairn_wheel)
set(CAIRN_SCRIPTS_DIR "${SKBUILD_SCRIPTS_DIR}")
if(NOT CAIRN_SCRIPTS_DIR)
  set(CAIRN_SCRIPTS_DIR bin)
endif()

if(TARGET cairn_cli)
  add_dependencies(cairn_wheel cairn_cli)
  foreach(command cairn atc omg msame msprof msaccucmp)  # one program that answers to six names
    install(PROGRAMS $<TARGET_FILE:cairn_cli> DESTINATION ${CAIRN_SCRIPTS_DIR} RENAME ${command} ${wheel})
  endforeach()
endif()

if(TARGET cairn)
  add_dependencies(cairn_wheel cairn)
  install(TARGETS cairn LIBRARY DESTINATION cairn NAMELINK_SKIP ${wheel})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cairn DESTINATION cairn/include ${wheel})
endif()

if(CAIRN_PYTHON AND TARGET cairn AND EXISTS ${PROJECT_SOURCE_DIR}/python/cairn/_cairn.cpp)
  if(NOT SKBUILD AND NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
  nanobind_add_module(_cairn NB_STATIC ${PROJECT_SOURCE_DIR}/python/cairn/_cairn.cpp
    ${PROJECT_SOURCE_DIR}/python/cairn/job.cpp ${PROJECT_SOURCE_DIR}/python/cairn/judge.cpp
    ${PROJECT_SOURCE_DIR}/python/cairn/operators.cpp ${PROJECT_SOURCE_DIR}/python/cairn/user_ops.cpp)
  target_link_libraries(_cairn PRIVATE cairn)
  target_include_directories(_cairn PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(nanobind-static PRIVATE -w)
  set_target_properties(_cairn PROPERTIES INSTALL_RPATH "$ORIGIN")
  add_dependencies(cairn_wheel _cairn)
  install(TARGETS _cairn LIBRARY DESTINATION cairn ${wheel})
  nanobind_add_module(_data NB_STATIC ${PROJECT_SOURCE_DIR}/python/cairn/_data.cpp ${PROJECT_SOURCE_DIR}/python/cairn/_data_files.cpp)
  target_link_libraries(_data PRIVATE cairn_data)
  target_include_directories(_data PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_options(_data PRIVATE -Wl,--exclude-libs,ALL)
  add_dependencies(cairn_wheel _data)
  install(TARGETS _data LIBRARY DESTINATION cairn ${wheel})
endif()
