"""Many ranks: operators, steps, collectives and requests over them, and who is behind."""
