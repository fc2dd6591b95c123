"""What `torchtrt_viz.widgets.charts` makes figures with: plotly is imported when one is made."""
