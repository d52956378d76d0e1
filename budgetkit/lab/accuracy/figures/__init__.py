"""Figures of counting accuracy: errors by kind of text, buffers, room left in a window, speeds."""
