"""Adapters: keep the conversations of agent frameworks within a budget, one file for each framework.

A file imports its framework only when it is used: you need no framework but your own.
"""
