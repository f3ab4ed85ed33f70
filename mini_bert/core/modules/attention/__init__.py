"""Attention, and what adds to its scores."""
