# The Python parser: tree-sitter's core and its Python grammar, C sources out of their PyPI source archives. Fetched once
# into ${CAIRN_CACHE:-~/.cache/cairn}, checked against the hashes below (before anything in them is looked at), unpacked
# into the build folder. Target: cairn_tree_sitter.
set(CAIRN_TREE_SITTER_ARCHIVES
  "tree-sitter 0.23.2 tree-sitter-0.23.2 66bae8dd47f1fed7bdef816115146d3a41c39b5c482d7bad36d9ba1def088450"
  "tree-sitter-python 0.23.6 tree_sitter_python-0.23.6 354bfa0a2f9217431764a631516f85173e9711af2c13dbd796a8815acfe505d9")

if(DEFINED ENV{CAIRN_CACHE})
  set(cache "$ENV{CAIRN_CACHE}/pypi")
else()
  set(cache "$ENV{HOME}/.cache/cairn/pypi")
endif()
set(sources ${CMAKE_CURRENT_BINARY_DIR}/tree-sitter)

# cairn_archive_is(file hash result): whether the file exists and is the pinned one.
function(cairn_archive_is file hash result)
  set(${result} FALSE PARENT_SCOPE)
  if(EXISTS ${file})
    file(SHA256 ${file} found)
    if(found STREQUAL hash)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

foreach(entry ${CAIRN_TREE_SITTER_ARCHIVES})
  separate_arguments(entry)
  list(GET entry 0 package)
  list(GET entry 1 version)
  list(GET entry 2 stem)
  list(GET entry 3 hash)
  set(archive ${cache}/${stem}.tar.gz)
  cairn_archive_is(${archive} ${hash} present)
  if(NOT present)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    file(MAKE_DIRECTORY ${cache})
    file(WRITE ${sources}/requirement.txt "${package}==${version} --hash=sha256:${hash}\n")
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -m pip --disable-pip-version-check -q download --no-deps --no-binary :all:
              --require-hashes -r ${sources}/requirement.txt -d ${cache}
      OUTPUT_VARIABLE said ERROR_VARIABLE said)
    cairn_archive_is(${archive} ${hash} present)
    if(NOT present)
      message(FATAL_ERROR "script migration needs ${package} ${version} from PyPI and it could not be fetched; go online "
        "once, or put ${stem}.tar.gz into ${cache}, or build without: -DCAIRN_MIGRATE=OFF\n${said}")
    endif()
  endif()
  if(NOT EXISTS ${sources}/${stem}/PKG-INFO)
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${sources})
  endif()
endforeach()

# The grammar's archive leaves out the headers it shares with the core; the core's own are the same.
set(core ${sources}/tree-sitter-0.23.2/tree_sitter/core/lib)
foreach(header parser.h array.h alloc.h)
  configure_file(${core}/src/${header} ${sources}/include/tree_sitter/${header} COPYONLY)
endforeach()

set(grammar ${sources}/tree_sitter_python-0.23.6/src)
add_library(cairn_tree_sitter STATIC ${core}/src/lib.c ${grammar}/parser.c ${grammar}/scanner.c)
target_include_directories(cairn_tree_sitter SYSTEM PUBLIC ${core}/include)
target_include_directories(cairn_tree_sitter PRIVATE ${core}/src ${sources}/include)
# A tree stays on its thread, so its references are counted without atomics, which atomic.h, and nothing else, does for this
# compiler.
target_compile_definitions(cairn_tree_sitter PRIVATE TREE_SITTER_HIDE_SYMBOLS __TINYC__)
target_compile_options(cairn_tree_sitter PRIVATE -w)
set_target_properties(cairn_tree_sitter PROPERTIES C_STANDARD 11)
