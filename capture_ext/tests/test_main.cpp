#include "tests/check.hpp"

int main(int argc, char** argv) { return torchtrt_viz::test::run_all(argc, argv); }
