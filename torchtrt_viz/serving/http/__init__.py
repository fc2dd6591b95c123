"""Control from outside: HTTP routes and command-line flags that any engine can add."""
