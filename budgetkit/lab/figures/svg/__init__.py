"""A figure's plain specification drawn as SVG, without plotly and without a browser: `svg` in drawing.py."""
