"""Pruning: policies that say which messages leave a long history, and the code that carries out what they say."""
