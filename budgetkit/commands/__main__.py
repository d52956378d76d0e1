"""``python -m budgetkit.commands``: the command line where its script is not on the path."""

from budgetkit.commands import main

if __name__ == "__main__":
    main()
