"""What leaves the program as a file or as text: tables, HTML pages, static pictures, Perfetto traces."""
