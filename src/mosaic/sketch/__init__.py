"""Rows that stay where they are: who makes passes over them, and the paper's Algorithm 3."""
