"""Easy sequences first: how much of the sorted sequences a step may draw from, and which of them it draws. What is
easy, and how fast the share grows, are words of a config: mini_bert/training/curricula."""
