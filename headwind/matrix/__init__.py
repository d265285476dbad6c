"""What a user writes in matrix.yaml: values with units, keys, what fits together, and what to say when it does not."""
