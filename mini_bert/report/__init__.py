"""Pages that a browser opens from a file: charts as SVG, text as HTML, nothing loaded from elsewhere."""
