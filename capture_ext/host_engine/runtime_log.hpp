// What the ExecuTorch runtime logs while this thread is in a call: its functions return a bare code, the
// reason goes to the log only.
#pragma once

#include <string>
#include <vector>

namespace torchtrt_viz::et {

// Collects the error messages that the runtime logs on this thread while it lives. Messages that nobody took
// go to where they would have gone without it when it ends; those of other threads always do.
class RuntimeLog {
 public:
  RuntimeLog();
  ~RuntimeLog();
  RuntimeLog(const RuntimeLog&) = delete;
  RuntimeLog& operator=(const RuntimeLog&) = delete;

  // The messages so far, one a line, and forgets them.
  std::string take();

  struct Line {
    unsigned long timestamp = 0;
    char level = 'E';
    std::string file, function, message;
    std::size_t line = 0;
  };
  void add(Line line);

 private:
  std::vector<Line> lines_;
  RuntimeLog* outer_;
};

}  // namespace torchtrt_viz::et
