"""Numbers that are stored in fewer bits than they are computed with. Formats of files are in core/storage."""
