"""Serve the app from the command line.

Run ``python -m budgetkit.lab.app [FILE or FOLDER] [option of Voilà ...]``.
"""

import sys

from budgetkit.lab.app.serving import FIRST, serve

if __name__ == "__main__":
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    sources = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    serve(sources[0] if sources else FIRST, *options)
