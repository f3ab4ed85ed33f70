"""Writing to disk so that a crash leaves the old state or the new one: files, directories, and the locks around them.

    write_files      files in a directory: a temporary name, fsync, rename
    finish_renames   the part of that which a killed process has left; before such files are read
    claimed          the right to make, replace or remove one directory, whole or not at all
    lock_directory   the right to change what is inside a directory
    cache_folder     the place of results that can be computed again
"""

from .cache_folder import cache_folder
from .claims import Claim, claimed, recover, remove_directory, save_files
from .locks import Lock, lock_directory
from .writing import finish_renames, sync_directory, write_files

__all__ = ["Claim", "Lock", "cache_folder", "claimed", "finish_renames", "lock_directory", "recover",
           "remove_directory", "save_files", "sync_directory", "write_files"]
