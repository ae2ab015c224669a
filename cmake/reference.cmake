# The program behind ./dev docs: writes docs/reference from the op, option and frontend tables.
add_executable(reference EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/reference/main.cpp)
target_link_libraries(reference PRIVATE ${CAIRN_FOLDERS})
