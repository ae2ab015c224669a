# The TensorFlow door: _cairn_tf.so, loaded by the package npu_bridge into the process of stock TensorFlow 2.15, and the
# tests of its part that needs no TensorFlow. The engine is loaded by it at run time, never linked.
option(CAIRN_TENSORFLOW "build the TensorFlow adapter against the Python environment's TensorFlow" OFF)
set(adapter ${PROJECT_SOURCE_DIR}/adapters/tensorflow)

add_library(cairn_tf_core STATIC ${adapter}/src/cluster_choice.cpp ${adapter}/src/engine.cpp ${adapter}/src/op_traits.cpp ${adapter}/src/partition.cpp
                                 ${adapter}/src/report.cpp ${adapter}/src/rule.cpp ${adapter}/src/size_choice.cpp ${adapter}/src/units.cpp)
target_include_directories(cairn_tf_core PUBLIC ${adapter}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(cairn_tf_core PUBLIC nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})

if(CAIRN_TESTS)
  find_package(GTest REQUIRED)
  add_executable(test_door ${PROJECT_SOURCE_DIR}/tests/door/cluster_choice_test.cpp
                           ${PROJECT_SOURCE_DIR}/tests/door/partition_test.cpp
                           ${PROJECT_SOURCE_DIR}/tests/door/size_choice_test.cpp)
  set_target_properties(test_door PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(test_door PRIVATE cairn_tf_core GTest::gtest GTest::gtest_main)
endif()

if(CAIRN_TENSORFLOW)
  if(NOT Python_EXECUTABLE)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"
    OUTPUT_VARIABLE tensorflow OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  cairn_together(sources ${adapter}/src/assertion.cpp ${adapter}/src/builder.cpp ${adapter}/src/cluster_op.cpp ${adapter}/src/clusterer.cpp
                         ${adapter}/src/collective_fusion.cpp ${adapter}/src/collective_order.cpp ${adapter}/src/collectives.cpp
                         ${adapter}/src/edges.cpp ${adapter}/src/passes.cpp ${adapter}/src/second_cut.cpp
                         ${adapter}/src/stock_function.cpp ${adapter}/src/stock_rewriting.cpp ${adapter}/src/one_node_op.cpp)
  add_library(cairn_tf MODULE ${sources})
  target_include_directories(cairn_tf SYSTEM PRIVATE ${tensorflow}/include)
  target_include_directories(cairn_tf PRIVATE ${PROJECT_SOURCE_DIR})
  # NDEBUG: reference counts of TensorFlow behave differently without it. The headers' own warnings are not ours.
  target_compile_definitions(cairn_tf PRIVATE NDEBUG _GLIBCXX_USE_CXX11_ABI=1 EIGEN_MAX_ALIGN_BYTES=64)
  target_compile_options(cairn_tf PRIVATE -Wno-unused-parameter -Wno-sign-compare -Wno-deprecated-declarations)
  target_precompile_headers(cairn_tf PRIVATE <tensorflow/core/common_runtime/optimization_registry.h>
      <tensorflow/core/framework/function.h> <tensorflow/core/framework/op_kernel.h>
      <tensorflow/core/framework/resource_var.h> <tensorflow/core/graph/algorithm.h> <tensorflow/core/graph/graph.h>)
  file(WRITE ${PROJECT_BINARY_DIR}/CMakeFiles/cairn_tf.dir/cmake_pch.hxx.gch.sum
       "${CMAKE_CXX_COMPILER_VERSION} TensorFlow 2.15.1, headers 1")
  target_link_libraries(cairn_tf PRIVATE cairn_tf_core ${tensorflow}/libtensorflow_framework.so.2)
  set(tf_exports ${adapter}/src/exports.map)
  target_link_options(cairn_tf PRIVATE -Wl,-z,defs -Wl,--version-script=${tf_exports} -Wl,-rpath,$ORIGIN/../tensorflow)
  set_target_properties(cairn_tf PROPERTIES PREFIX "" OUTPUT_NAME _cairn_tf SKIP_BUILD_RPATH ON LINK_DEPENDS ${tf_exports})
  install(TARGETS cairn_tf LIBRARY DESTINATION npu_bridge COMPONENT cairn_tensorflow_wheel)
endif()
