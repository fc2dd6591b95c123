"""Saved traces and sessions: this package's own frames as Parquet, which `load` reads back equal.

A saved trace is a folder::

    NAME/saved_trace.json          version, rows and dtypes of each frame, categories' counts, meta, warnings
         spans.parquet             a row per event, as `Trace.spans`; `row` is what other tables refer to
         tracks.parquet instants.parquet counters.parquet flows.parquet
         args.parquet              row of spans, and the event's details as JSON text (also instant_args)
         categories.parquet        every category of each categorical column, in order
         meta-0.parquet ...        frames among the meta data (layers of engines, runs of an ETDump)

A saved session has a folder for each table, partitioned as Hive does it::

    NAME/saved_session.json        the recordings, and what the session says of itself
         ranks.parquet             a row per recording; `recording` is its number
         spans/rank=3/cycle=0/recording=7/spans.parquet, and so on for each table above
         traces/rank=3/cycle=0/recording=7/saved_trace.json
         tables/                   what was worked out of all ranks, for the tables of the session

The documents are written last: without one there is nothing to be read. Fields of the Parquet files carry
unit and meaning. Files and columns beyond these are ignored; a later version of the documents is refused.
Documents hold plain JSON, and nothing in these files is ever executed.
"""
