"""The whole product on one machine, for development, the demo and tests; production uses none of it."""
