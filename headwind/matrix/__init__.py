"""The matrix file: values with units, keys, checks that they fit together, and errors with hints."""
