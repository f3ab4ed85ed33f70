"""Number formats that are stored in fewer bits than are used to compute. Formats of files are in core/storage."""
