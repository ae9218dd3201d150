"""Model profiles: registering, finding and trying the models that an operator offers."""
