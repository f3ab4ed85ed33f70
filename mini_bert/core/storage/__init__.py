"""Models in files. Layouts of other libraries are in mini_bert/interop."""
