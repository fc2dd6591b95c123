"""What every chart shows, out of frames of `torchtrt_viz.analysis`, and its picture as SVG.

A module per chart makes a `chart.Chart`: words, units and marks. `svg` and `plan_svg` draw it without a
browser, for pages and files; `torchtrt_viz.widgets.charts` draws the same as a plotly figure.
"""
