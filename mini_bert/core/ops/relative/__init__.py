"""Operations that read rows or columns by their distance from a position."""
