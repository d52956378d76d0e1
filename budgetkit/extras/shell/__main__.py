"""``python -m budgetkit.extras.shell``: the command line where its script is not on the path."""

from budgetkit.extras.shell import main

if __name__ == "__main__":
    main()
