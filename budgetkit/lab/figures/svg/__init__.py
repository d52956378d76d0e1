"""A figure's plain specification drawn as SVG, without plotly and without a browser."""

from budgetkit.lab.figures.svg.drawing import svg

__all__ = ["svg"]
