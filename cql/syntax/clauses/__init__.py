"""The clauses of statements, each kind read by a class over ``words.py``; a statement inherits those that it takes."""
