"""From what a caller names to data: what each file is, reading it, and putting several together.

`load` is the entry; `walk` finds files, `sniffing` tells formats, `reading` reads one file, `collection`,
`capture_folder`, `rank_files` and `session_files` put several together.
"""
