"""The paper's experiments again: problems, trials, a store for them, and ours beside the published
numbers.
"""
