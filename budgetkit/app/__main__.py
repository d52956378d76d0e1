"""Serve the app: ``python -m budgetkit.app [FILE] [option of Voilà ...]``."""

import sys

from budgetkit.app.serving import serve

if __name__ == "__main__":
    given = sys.argv[1:]
    files = [each for each in given if not each.startswith("-")]
    serve(*(files or ["support-chat"])[:1], *(each for each in given if each.startswith("-")))
