"""The platform's collective library, for one rank."""
